-- Where a cluster had the tenant when an entry was recorded, and when the snapshot of an export was taken (change_placement):
-- transaction ids and snapshots are compared in one place alone. Null on one server, where this takes no room. The type is
-- that of transaction ids, since the numbers lose their meaning together.
alter table change_entry add column recorded_on xid8;
alter table job add column snapshot_on xid8;
