-- The tenants whose tallies do not count all entries by type yet, and the first cell that is still to be counted: the finest level comes
-- first, and in it the oldest cell. Tallies by type have the actor 0 and the kinds of change_type_number. They stand in each cell in which
-- the tenant has tallies. docs/decisions/0045-tallies-by-type.md tells why it is laid out like this.
create table change_type_backlog (
  tenant text collate "C" primary key references tenant (tenant),
  level  smallint not null,
  bucket bigint not null
);
insert into change_type_backlog (tenant, level, bucket)
  select t.tenant, 4, 0 from tenant t where exists (
    select from change_tally tally where tally.tenant = t.tenant and tally.level = 0);
