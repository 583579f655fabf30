-- Custom entities, and what sorting and paging need of the database. docs/decisions/0006-custom-entities-and-pagination.md
-- tells why it is laid out like this.

-- Documents are kept twice: as the JSON text they came in, and projected to jsonb for filters and sorting. jsonb has no
-- U+0000, so in the projection U+0001 U+0001 stands for it and U+0001 U+0002 for U+0001, which keeps every order.


create table custom_entity (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  json_schema text collate "C",
  primary key (tenant, id)
);

create table custom_instance (
  tenant text collate "C" not null,
  type text collate "C" not null,
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  primary key (tenant, type, id),
  foreign key (tenant, type) references custom_entity (tenant, id)
);
