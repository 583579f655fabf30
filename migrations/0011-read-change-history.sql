-- What reading the change history needs of the tables of 0003-change-history.sql.

-- The tallies of one cell stand together, whatever kind or actor they count.
alter table change_tally drop constraint change_tally_pkey, add primary key (tenant, level, bucket, actor, kind);

-- How often a tenant's deltas have been folded: while this stays the same, so do its tallies.
create table change_folded (
  tenant text collate "C" primary key references tenant (tenant),
  folds bigint not null
) with (fillfactor = 50);
