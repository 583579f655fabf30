-- The names of the paths that entries have, each with the number that stands for it in change_entry.path_numbers. Two
-- recorders that meet a new name at the same moment register it twice: neither waits for the other.
create table change_path (
  tenant text collate "C" not null references tenant (tenant),
  path uuid not null,
  number integer not null,
  -- '' for the number of the rest, which has no name
  entity text collate "C" not null,
  name text collate "C" not null,
  primary key (tenant, path)
);
create index change_path_number on change_path (tenant, number);

-- The tenants whose entries of this moment or before may have no path_numbers yet. The service numbers them.
create table change_path_backlog (
  tenant text collate "C" primary key references tenant (tenant),
  at bigint not null
);
insert into change_path_backlog (tenant, at) select tenant, 9007199254740991 from tenant;

-- Null: not numbered yet.
alter table change_entry add column path_numbers integer[];
