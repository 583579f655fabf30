-- How far `annals capture` has recorded the source's log. There is one capture of an installation, so there is one row.
-- docs/decisions/0029-capture.md tells why it is laid out like this.
create table capture_position (
  singleton         boolean primary key default true check (singleton),
  -- Of the source's cluster. It stays the same over a restart, a failover and a restored copy.
  system_identifier text collate "C" not null,
  timeline          integer not null,
  slot              text collate "C" not null,
  -- preparing: the slot is being made. copying: and the tables are compared with the history. What was begun begins anew.
  phase             text collate "C" not null check (phase in ('preparing', 'copying', 'recording')),
  -- The commit record of the last transaction that is recorded, wholly or in part, and the end of that record.
  commit_lsn        pg_lsn not null,
  end_lsn           pg_lsn not null,
  -- What tells that transaction from another one at the same place, as a restored source may have it. Null: none yet.
  xid               bigint,
  committed_at      bigint,
  -- How many of its row changes are recorded, and whether these are all.
  changes           bigint not null default 0,
  complete          boolean not null default true,
  -- Milliseconds since 1970: when the last recorded change happened. The next one is not before it.
  last_at           bigint not null default 0,
  -- When this row was written last.
  heartbeat         timestamptz not null default now()
);
