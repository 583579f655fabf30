-- The change history. docs/decisions/0003-history-storage.md tells why it is laid out like this.
-- Times are whole milliseconds since 1970-01-01T00:00:00Z.

-- What tallies can tell apart about a change besides its actor: entity type, operation, and the set of
-- entity types it is related to. Two recorders that meet a new kind at the same moment do not wait for each
-- other: each registers it under a number of its own, so `lookup` is not unique.
create table change_kind (
  tenant text collate "C" not null references tenant (tenant),
  kind bigint generated always as identity,
  lookup uuid not null,
  entity text collate "C" not null,
  type text collate "C" not null check (type in ('create', 'update', 'delete')),
  related_entities text[] collate "C" not null,
  registered xid8 not null default pg_current_xact_id(),
  primary key (tenant, kind)
);
create index change_kind_lookup on change_kind (tenant, lookup);
create index change_kind_registered on change_kind (tenant, registered);

create table change_actor (
  tenant text collate "C" not null references tenant (tenant),
  actor bigint generated always as identity,
  lookup uuid not null,
  name text collate "C" not null,
  registered xid8 not null default pg_current_xact_id(),
  primary key (tenant, actor)
);
create index change_actor_lookup on change_actor (tenant, lookup);
create index change_actor_registered on change_actor (tenant, registered);

-- One row a change, written once. `document` is a hash of entity_id, which may be too long for an index;
-- `identity` is what makes recording a change twice impossible. `related` and `paths` are JSON kept as the
-- text it came in: numbers must come back as they were written.
create table change_entry (
  tenant text collate "C" not null,
  at bigint not null,
  sequence bigint generated always as identity,
  kind bigint not null,
  actor bigint not null,
  document uuid not null,
  identity uuid not null,
  entity_id text collate "C" not null,
  name text collate "C",
  schema_version text collate "C",
  related text collate "C",
  paths text collate "C" not null,
  primary key (tenant, at, sequence)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
create unique index change_entry_identity on change_entry (tenant, at, identity);
create index change_entry_kind on change_entry (tenant, kind, at, sequence);
create index change_entry_actor on change_entry (tenant, actor, at, sequence) include (kind);
create index change_entry_document on change_entry (tenant, document, at, sequence) include (kind);

-- One row for each distinct related item of an entry, so that it can be asked for by item.
create table change_related (
  tenant text collate "C" not null,
  at bigint not null,
  sequence bigint not null,
  item integer not null,
  document uuid not null,
  entity text collate "C" not null,
  entity_id text collate "C" not null,
  primary key (tenant, at, sequence, item)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
create index change_related_document on change_related (tenant, document, at, sequence);

-- Entries that the tallies do not hold yet: one row a recording transaction, parallel arrays.
create table change_delta (
  tenant text collate "C" not null,
  delta bigint generated always as identity,
  ats bigint[] not null,
  kinds bigint[] not null,
  actors bigint[] not null,
  primary key (tenant, delta)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- How many entries a cell of time holds, for a key: a kind, an actor, both, or neither (0 stands for any).
-- Cells nest: 1,024 days, 32 days, a day, an hour, a minute (levels 0 to 4), and the row of a cell has running
-- totals over those of its children that are not empty: upto[i] counts the children up to children[i].
-- Level 0 is always there. A finer cell has its rows only where it is dense: where its kind, or its actor, or
-- for key (0, 0) the tenant, has at least change_dense() entries in it; a sparser one is counted from its entries.
create table change_tally (
  tenant text collate "C" not null,
  level smallint not null,
  actor bigint not null,
  kind bigint not null,
  bucket bigint not null,
  children smallint[] not null,
  upto bigint[] not null,
  primary key (tenant, level, actor, kind, bucket)
) with (fillfactor = 80);

-- What has been dropped, or is to be: nothing before `horizon`, nothing older than `keep_days` whole UTC days.
create table change_retention (
  tenant text collate "C" primary key references tenant (tenant),
  keep_days integer check (keep_days > 0),
  horizon bigint not null check (horizon % 86400000 = 0)
);

create function change_dense() returns bigint language sql immutable parallel safe as 'select 64::bigint';

-- What stands for a document id in an index: the first 16 bytes of the SHA-256 of its UTF-8.
create function change_document(entity_id text) returns uuid language sql immutable parallel safe as
  $$ select encode(substring(sha256(convert_to(entity_id, 'UTF8')) for 16), 'hex')::uuid $$;

-- The length of a cell of that level, in milliseconds; the children of level 4 are seconds.
create function change_cell(level integer) returns bigint language sql immutable parallel safe as
  'select (array[88473600000, 2764800000, 86400000, 3600000, 60000, 1000]::bigint[])[level + 1]';

-- The first moment, in milliseconds, whose history a tenant still has.
create function change_horizon(of_tenant text, now bigint) returns bigint language sql stable as $$
  select coalesce(max(greatest(horizon, (now / 86400000 - keep_days) * 86400000)), 0)
    from change_retention where tenant = of_tenant
$$;
