-- What an entry keeps beside what it shows. docs/decisions/0027-what-an-entry-keeps.md tells why.

-- By which client or capture changes came. An import and this service itself need no row.
create table change_recorder (
  tenant text collate "C" not null references tenant (tenant),
  recorder bigint generated always as identity (start with 16),
  lookup uuid not null,
  way text collate "C" not null check (way in ('recorder', 'capture', 'relay')),
  name text collate "C" not null,
  primary key (tenant, recorder)
);
create index change_recorder_lookup on change_recorder (tenant, lookup);

-- `recorded_by`: null for an import, 1 for this service itself, else a row of change_recorder; 0 where nobody noted it. The default
-- gives all entries that are there already a 0 without a write, and takes no room in those that come.
alter table change_entry
  add column marks text collate "C",
  add column context text collate "C",
  add column recorded_by bigint default 0;
alter table change_entry alter column recorded_by drop default;
