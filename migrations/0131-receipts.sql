-- What was done with a tenant's history besides recording it: entries erased, dropped, held. A receipt has a position as an entry has one;
-- in change_position its place is -1. `body`: JSON text in one line, without the position.
create table change_receipt (
  tenant text collate "C" not null references tenant (tenant),
  position bigint not null,
  body text collate "C" not null,
  primary key (tenant, position)
);
