-- What seals histories: the leaves of a tenant's Merkle tree, its tiles, and the logs that sign it. docs/decisions/proof.md tells why.

-- The leaves of the positions from `first` on. A row stays within a block of 256 positions, which is one tile.
create table proof_leaf (
  tenant text collate "C" not null references tenant (tenant),
  first bigint not null,
  -- a byte each: 1 an entry, 2 a receipt, 3 an entry that was gone before it was sealed
  kinds bytea not null,
  -- 32 bytes each: the commitment to an entry, the hash of the leaf of a receipt, else zeros
  commitments bytea not null,
  -- 32 bytes each, of which the salts of an entry grow; zeros where there are none, or not any more
  seeds bytea not null,
  primary key (tenant, first)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
-- Random bytes do not compress.
alter table proof_leaf alter column commitments set storage external, alter column seeds set storage external;

-- The hashes of a tile above the leaves, one after the other.
create table proof_tile (
  tenant text collate "C" not null references tenant (tenant),
  level integer not null,
  tile bigint not null,
  hashes bytea not null,
  primary key (tenant, level, tile)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
alter table proof_tile alter column hashes set storage external;

-- A name and a key under which the tree of a tenant is signed.
create table proof_log (
  tenant text collate "C" not null references tenant (tenant),
  origin text collate "C" not null,
  vkey text collate "C" not null,
  began timestamptz not null default now(),
  -- the position of the receipt with which it begins; null: nothing is sealed yet
  receipt bigint,
  -- the leaves of the last checkpoint, the note of it, and when it was looked after
  size bigint not null default 0,
  checkpoint text collate "C",
  signed_at timestamptz,
  -- null: it is signed
  ended timestamptz,
  primary key (tenant, origin)
);
create unique index proof_log_current on proof_log (tenant) where ended is null;

-- What is left of the proof of an entry of which a part was erased: the indexes of the hidden fields, their hashes one after the
-- other, and the cover of the others.
create table proof_redaction (
  tenant text collate "C" not null references tenant (tenant),
  position bigint not null,
  hidden integer[] not null,
  hashes bytea not null,
  cover bytea not null,
  primary key (tenant, position)
);

-- The fold that the sealing of a tenant has followed, and when it looks again.
alter table change_folded add column sealed bigint not null default -1, add column seal_after timestamptz;
