-- What a tenant has used, by UTC day. docs/decisions/0041-usage.md tells why it is laid out like this.

-- A measure of a day is a row of its own: entries, tokens and requests are counted by different transactions, which so
-- never wait for each other. Nothing deletes these rows but the deletion of the tenant.
create table usage_count (
  tenant  text collate "C" not null references tenant (tenant),
  -- days since 1970-01-01
  day     integer not null,
  measure text collate "C" not null check (measure in ('entries', 'bytes', 'requests', 'inputTokens', 'outputTokens')),
  amount  bigint not null,
  primary key (tenant, day, measure)
) with (fillfactor = 50);

-- The day on which the entries of a delta were recorded, and their bytes. Deltas from before this migration have no day.
alter table change_delta add column day integer, add column bytes bigint not null default 0;
