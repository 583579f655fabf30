-- The requests that a key may send each second; null: as many as its tenant. What is left of them is counted beside what is left of the
-- tenant's own, which is the row with the key ''.
alter table access_key add column rate integer;
alter table tenant_rate add column key_id text collate "C" not null default '';
alter table tenant_rate drop constraint tenant_rate_pkey, add primary key (tenant, key_id);
