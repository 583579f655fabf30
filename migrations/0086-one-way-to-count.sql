-- Tallies by type went, and with them the record of which tenants had not all of them yet.
delete from change_tally where kind < 0;
drop table change_type_backlog;
