-- Where a cluster has the tenant, as a number that is new after each move. Transaction ids and snapshots mean
-- something in one place alone. Null: the database is one server.
create function change_placement(of_tenant text) returns xid8 language sql immutable as 'select null::xid8';
