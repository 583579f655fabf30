-- Queries of the change history that a tenant keeps by name. As other documents they are kept twice: as the JSON text
-- that goes out, and as jsonb for filters and sorting.
create table saved_view (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  primary key (tenant, id)
);
