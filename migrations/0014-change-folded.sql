-- Two early forms of 0011-read-change-history.sql did not make this table. A database that has it keeps it as it is.
create table if not exists change_folded (
  tenant text collate "C" primary key references tenant (tenant),
  folds bigint not null
) with (fillfactor = 50);
