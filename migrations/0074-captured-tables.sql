-- What `annals capture` knows of each table that it records, so that a table that was changed meanwhile is told from one that is as it was.
-- docs/decisions/0074-tables-that-change.md tells why it is laid out like this.
create table capture_table (
  -- As the mapping names it.
  name        text collate "C" primary key,
  -- OIDs of the source: of the table, and of its membership in the publication. Another one is another table, or one that was left out
  -- for a while.
  relation    bigint not null,
  publication bigint not null,
  -- As pg_class.relreplident has it.
  identity    text collate "C" not null,
  -- In their order, each as [name, OID of its type], without computed ones: those of the row that was recorded last.
  columns     jsonb not null,
  -- The tables below that hold rows: the name of each by its OID.
  partitions  jsonb not null
);
