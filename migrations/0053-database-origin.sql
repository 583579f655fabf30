-- Where the transaction ids that this database keeps come from. docs/decisions/0037-backups-and-transaction-ids.md tells why it is
-- laid out like this.
create table database_origin (
  singleton         boolean primary key default true check (singleton),
  -- Of the server; null where the role may not ask for it.
  system_identifier text collate "C",
  -- This table and the transaction that wrote this row. A copy that was not made block by block has it in another table, or written by
  -- another transaction: so its transaction ids are those of another server.
  relation          bigint not null,
  written_by        xid8 not null
);
