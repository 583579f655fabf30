-- Where a cluster has the tenant, as a number that changes with each move. Transaction ids and snapshots are valid in
-- one place only. Null: the database is one server.
create function change_placement(of_tenant text) returns xid8 language sql immutable as 'select null::xid8';
