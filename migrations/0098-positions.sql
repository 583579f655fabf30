-- The positions of entries: 1, 2, 3 … of a tenant. A row has a range of them, which begins at `first`, in parallel arrays: at and
-- sequence of the entry in change_entry, when it was recorded in milliseconds, and a random number that was given with the position.
create table change_position (
  tenant text collate "C" not null references tenant (tenant),
  first bigint not null,
  -- -1: no entry
  ats bigint[] not null,
  sequences bigint[] not null,
  recorded bigint[] not null,
  fingerprints integer[] not null,
  -- the least and the greatest of ats, without -1
  oldest bigint not null,
  newest bigint not null,
  -- What was visible when the positions were given, and where a cluster had the tenant (change_placement). The newest row's count.
  -- Null: not known.
  snapshot pg_snapshot,
  placement xid8,
  primary key (tenant, first)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The tenants that had entries before there were positions. Positions 1 to `until` are theirs (null: not counted yet), those up to
-- `filled` are in change_position. The next entry to fill in comes after `at` and `sequence`.
create table change_position_backlog (
  tenant text collate "C" primary key references tenant (tenant),
  until bigint,
  filled bigint not null default 0,
  at bigint,
  sequence bigint not null default 0,
  fingerprint integer
);
insert into change_position_backlog (tenant) select tenant from tenant;

-- The entries of a delta by their sequences, the transaction that recorded them (null: unknown), and the position of the first one
-- (null: they have none yet). Deltas from before this migration have 0 and no sequences: their entries are of the backlog.
alter table change_delta add column sequences bigint[] not null default '{}', add column position bigint default 0,
  add column transaction xid8;
alter table change_delta alter column sequences drop default, alter column position drop default;
-- Rows are updated once, and stay on their page.
alter table change_delta set (fillfactor = 50);
create index change_delta_transaction on change_delta (tenant, transaction);
