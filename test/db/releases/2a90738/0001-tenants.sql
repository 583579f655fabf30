-- The tenants. Every other table leads its primary key with the tenant, so that it can be distributed by it.
create table tenant (
  tenant     text collate "C" primary key
             constraint tenant_name check (tenant ~ '^[a-z][a-z0-9]+$' and length(tenant) <= 63),
  created_at timestamptz not null default now()
);
