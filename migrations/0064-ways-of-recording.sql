-- When each way of a tenant recorded last. docs/decisions/0055-last-recorded-by-each-way.md tells why it is laid out like this.

-- By whom and when the entries of a delta were recorded: 1 for this service itself, 2 for imports, else a row of change_recorder;
-- milliseconds since 1970. Deltas from before this migration have neither.
alter table change_delta add column recorder bigint, add column recorded bigint;

-- The same of all folded deltas, the last of each recorder. The recorder 0 stands for what was recorded before this migration, by nobody knows
-- whom. Nothing deletes these rows but the deletion of the tenant.
create table change_way (
  tenant   text collate "C" not null references tenant (tenant),
  recorder bigint not null,
  recorded bigint not null,
  primary key (tenant, recorder)
) with (fillfactor = 50);
insert into change_way (tenant, recorder, recorded)
  select t.tenant, 0, floor(extract(epoch from now()) * 1000)
    from tenant t where exists (select from change_entry e where e.tenant = t.tenant);
