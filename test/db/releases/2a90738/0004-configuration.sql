-- What a tenant has set. A value is JSON kept as the text it came in; a secured one is kept sealed, bound to its
-- tenant and key, and nowhere in the clear.
create table configuration (
  tenant      text collate "C" not null references tenant (tenant),
  key         text collate "C" not null,
  value       text collate "C",
  sealed      bytea,
  version     bigint not null,
  description text collate "C",
  primary key (tenant, key),
  check ((value is null) <> (sealed is null))
);
