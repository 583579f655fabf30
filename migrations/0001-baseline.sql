-- The tables of Annals, by room. What a database has beside them: the ledger of the schema
-- (src/postgres/schema/ledger.ts), the routines (sql/), and indexes that the service builds after its start, beside
-- writers.
--
-- Every table of tenants leads its primary key with the tenant, so that it can be distributed by it. Documents (a
-- column `document` beside `fields`) are kept twice: as the JSON text that goes out, and as jsonb for filters and
-- sorting. jsonb has no U+0000, so in it U+0001 U+0001 stands for it and U+0001 U+0002 for U+0001, which keeps every
-- order. A secret is kept sealed, or as its SHA-256 alone.

-- Tenants -----------------------------------------------------------------------------------------

create table tenant (
  tenant     text collate "C" primary key
             constraint tenant_name check (tenant ~ '^[a-z][a-z0-9]+$' and length(tenant) <= 63),
  created_at timestamptz not null default now()
);

-- The installation: all processes on one database are one. Without a public address its id names the token issuer.
create table installation (
  singleton   boolean primary key default true check (singleton),
  id          uuid not null default gen_random_uuid(),
  -- sealed: under it hashes of erased entries are kept, so that a change that is sent again is recognised
  erasure_key bytea,
  -- steps of erasures: processes forget what they keep in memory when it grows
  erasures    bigint not null default 0
);
insert into installation default values;

-- Which server gave the transaction ids that this database keeps (docs/decisions/backups.md).
create table database_origin (
  singleton         boolean primary key default true check (singleton),
  -- of the server; null where the role may not read it
  system_identifier text collate "C",
  -- This table, and the transaction that wrote this row. They differ in a copy that was not made block by block: its
  -- transaction ids are those of another server.
  relation          bigint not null,
  written_by        xid8 not null
);

-- The configuration of a tenant. A value is JSON text; a secured one is sealed, bound to its tenant and key.
create table configuration (
  tenant      text collate "C" not null references tenant (tenant),
  key         text collate "C" not null,
  value       text collate "C",
  sealed      bytea,
  version     bigint not null,
  description text collate "C",
  primary key (tenant, key),
  check ((value is null) <> (sealed is null))
);

create table custom_entity (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  json_schema text collate "C",
  primary key (tenant, id)
);

create table custom_instance (
  tenant text collate "C" not null,
  type text collate "C" not null,
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  -- 1: too many values for the index of values, which leaves the instance out. A number rather than a boolean,
  -- because the planner guesses that half of the rows of a new table have each boolean.
  wide smallint not null default 0,
  primary key (tenant, type, id),
  foreign key (tenant, type) references custom_entity (tenant, id)
);
-- Instances whose name is a map by language: a term on the name looks into each language, which no index of values
-- answers. Made here and not after the start: `create index concurrently` waits for others of its kind, and they for
-- it.
create index custom_instance_map_name on custom_instance (tenant, type)
  where jsonb_typeof(fields -> 'name') = 'object';

-- What a tenant has used, by UTC day. A measure of a day is a row of its own: entries, tokens and requests are
-- counted by different transactions, which so never wait for each other. Deleted with the tenant alone.
create table usage_count (
  tenant  text collate "C" not null references tenant (tenant),
  -- days since 1970-01-01
  day     integer not null,
  measure text collate "C" not null check (measure in ('entries', 'bytes', 'requests', 'inputTokens', 'outputTokens')),
  amount  bigint not null,
  primary key (tenant, day, measure)
) with (fillfactor = 50);

-- What is left of the requests that a tenant may send each second, over all processes. Unlogged: a tenant without a
-- row has its full rate.
create unlogged table tenant_rate (
  tenant      text collate "C" references tenant (tenant),
  tokens      double precision not null,
  refilled_at timestamptz not null,
  -- a key with a rate of its own; '': all requests of the tenant
  key_id      text collate "C" not null default '',
  primary key (tenant, key_id)
) with (fillfactor = 50);

-- The tenants that have work waiting, as one process found them a moment ago for all processes. Unlogged: what is
-- lost is found again.
create unlogged table found_work (
  -- stands for the list of questions that one version of Annals asks
  questions uuid primary key,
  looked_at timestamptz not null default '-infinity',
  -- after it the answers are too old
  fresh_for interval not null default '0 s',
  -- the tenants of each question
  tenants   jsonb not null default '[]'
) with (fillfactor = 50);

-- Access ------------------------------------------------------------------------------------------

-- A client belongs to one tenant, and its id begins with the tenant's name.
create table oauth_client (
  tenant       text collate "C" not null references tenant (tenant),
  client_id    text collate "C" not null,
  name         text not null,
  -- null: a link made the client, or a sign-in
  secret_hash  bytea,
  scopes       text[] not null,
  created_at   timestamptz not null default now(),
  revoked_at   timestamptz,
  -- what it may see of the change history: an array of {"query", "hide"}, the outer one first; null: all of it
  restriction  jsonb,
  -- when the provider and the rules last let the person in since; null: when the client was made
  confirmed_at timestamptz,
  primary key (tenant, client_id)
);

-- The private keys that sign tokens, each sealed with the installation's secret key.
create table oauth_signing_key (
  kid        text primary key,
  sealed_key bytea not null,
  created_at timestamptz not null,
  -- From then on it signs nothing; it verifies for the longest life of a token more.
  retired_at timestamptz not null
);

-- Keys of programs that cannot renew tokens. A key is no client: it gets no token, and certain routes alone take it.
create table access_key (
  tenant       text collate "C" not null references tenant (tenant),
  key_id       text collate "C" not null,
  name         text not null,
  secret_hash  bytea not null,
  scopes       text[] not null,
  -- as of clients; null: all that the scopes permit
  restriction  jsonb,
  created_at   timestamptz not null default now(),
  -- null: never
  expires_at   timestamptz,
  revoked_at   timestamptz,
  -- to the minute; null: never
  used_at      timestamptz,
  -- A key that a signed-in person made: the client of the session, whose scopes, restriction and end it shares, and
  -- what the OpenID provider knows the person by.
  made_by      text collate "C",
  issuer       text collate "C",
  subject      text collate "C",
  -- the models that it may call, as provider/model; null: all that the tenant may
  models       text[],
  -- requests a second; null: as many as its tenant
  rate         integer,
  primary key (tenant, key_id)
);
create index access_key_made_by on access_key (tenant, made_by) where made_by is not null;

-- Sessions of the console.
create table console_session (
  tenant          text collate "C" not null references tenant (tenant),
  -- of the secret in the cookie
  secret_hash     bytea not null,
  client_id       text collate "C" not null,
  scopes          text[] not null,
  -- whether a link made the client, which then ends with the session
  by_link         boolean not null,
  created_at      timestamptz not null default clock_timestamp(),
  expires_at      timestamptz not null,
  -- what the OpenID provider knows the person by
  issuer          text,
  subject         text,
  -- the refresh token; without it the session ends with what the provider said
  sealed_renewal  bytea,
  -- every tenant that lets the person in
  tenants         text[] collate "C",
  -- when the rules were last evaluated; null where nobody evaluates them again
  checked_at      timestamptz,
  -- it is over and stays for the person's keys: no cookie leads to it, and the rules are evaluated as before
  for_keys        boolean not null default false,
  -- A renewal under way: `checked_at` alone cannot tell a session that was checked from one whose check failed.
  renewing_until  timestamptz,
  -- the hint with which the person signs out at the provider
  sealed_id_token bytea,
  primary key (tenant, secret_hash),
  foreign key (tenant, client_id) references oauth_client (tenant, client_id)
);
create index console_session_client on console_session (tenant, client_id, created_at);
create index console_session_check on console_session (checked_at) where checked_at is not null;

-- Links that begin a session of the console.
create table console_link (
  tenant      text collate "C" not null references tenant (tenant),
  -- of the secret in the link
  secret_hash bytea not null,
  client_id   text collate "C" not null,
  expires_at  timestamptz not null,
  primary key (tenant, secret_hash),
  foreign key (tenant, client_id) references oauth_client (tenant, client_id)
);

-- Who came in and what left: an event a row, and of the refusals of a client a row an hour. The id begins with the
-- microseconds of `at` in hexadecimal digits, so that the primary key has the order of time.
create table access_event (
  tenant  text collate "C" not null references tenant (tenant),
  id      text collate "C" not null,
  at      timestamptz not null,
  kind    text collate "C" not null,
  client  text collate "C" not null,
  name    text collate "C" not null,
  -- what the OpenID provider knows a person by
  issuer  text collate "C",
  subject text collate "C",
  details json not null,
  count   bigint not null default 1,
  -- where it came from: the address, the program as it names itself, and the session of the console that it began,
  -- used or ended
  address text collate "C",
  program text,
  session text collate "C",
  primary key (tenant, id)
);

-- The change history (docs/decisions/counting.md) --------------------------------------------------
-- Times are whole milliseconds since 1970-01-01T00:00:00Z.

-- What tallies tell apart about a change besides its actor: entity type, operation, and the entity types that it is
-- related to. Two recorders that meet a new kind at the same moment do not wait for each other: each registers it, so
-- `lookup` is not unique.
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

-- Registered as kinds are.
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

-- By which client or capture changes came, or which person who signed in. An import and the service itself need no
-- row.
create table change_recorder (
  tenant text collate "C" not null references tenant (tenant),
  recorder bigint generated always as identity (start with 16),
  lookup uuid not null,
  way text collate "C" not null check (way in ('service', 'recorder', 'capture', 'relay')),
  -- null: a person, whose name is that of the actor
  name text collate "C",
  -- what the OpenID provider knows the person by
  issuer text collate "C",
  subject text collate "C",
  primary key (tenant, recorder)
);
create index change_recorder_lookup on change_recorder (tenant, lookup);

-- A row a change. JSON is kept as the text that came in: numbers must come back as they were written.
create table change_entry (
  tenant text collate "C" not null,
  at bigint not null,
  sequence bigint generated always as identity,
  kind bigint not null,
  actor bigint not null,
  -- a hash of entity_id, which may be too long for an index
  document uuid not null,
  -- makes it impossible to record a change twice
  identity uuid not null,
  entity_id text collate "C" not null,
  name text collate "C",
  schema_version text collate "C",
  related text collate "C",
  paths text collate "C" not null,
  -- The transaction that recorded it: an export that was cut off resumes in its snapshot. Null: before every
  -- snapshot.
  recorded xid8 default pg_current_xact_id(),
  marks text collate "C",
  context text collate "C",
  -- null: an import; 1: the service itself; 0: nobody noted it; else a row of change_recorder
  recorded_by bigint,
  -- where a cluster had the tenant (change_placement); null on one server
  recorded_on xid8,
  -- numbers of change_path
  path_numbers integer[],
  -- what was erased, as a JSON array: actor, entityId, name, related, context, paths.<path>; null: nothing
  erased text collate "C",
  primary key (tenant, at, sequence)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
create unique index change_entry_identity on change_entry (tenant, at, identity);
create index change_entry_actor on change_entry (tenant, actor, at, sequence) include (kind);
create index change_entry_document on change_entry (tenant, document, at, sequence) include (kind);
-- A query for kinds and many actors is counted from this index alone.
create index change_entry_kind_actor on change_entry (tenant, kind, at, sequence) include (actor);
-- No plan depends on what these columns hold: to sample and sort their values took a quarter of each analysis, which
-- comes after every 2 % of new entries.
alter table change_entry
  alter column identity set statistics 0, alter column name set statistics 0,
  alter column schema_version set statistics 0, alter column related set statistics 0,
  alter column paths set statistics 0, alter column marks set statistics 0,
  alter column context set statistics 0, alter column recorded_by set statistics 0,
  alter column recorded set statistics 0, alter column recorded_on set statistics 0;

-- A row for each distinct related item of an entry, so that it can be found by item.
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

-- Changes that can never be recorded, so that the way they came by goes on past them. `tenant` is empty where it is
-- unknown or malformed.
create table change_rejected (
  tenant text collate "C" not null,
  id uuid not null,
  way text collate "C" not null,
  recorder text collate "C",
  position text collate "C" not null,
  reason text collate "C" not null,
  -- the change as a line of an import, masked; null where its masks could not be applied
  sealed bytea,
  kept_at timestamptz not null default now(),
  primary key (tenant, id)
);

-- Entries that the tallies do not hold yet: a row a recording transaction, in parallel arrays.
create table change_delta (
  tenant text collate "C" not null,
  delta bigint generated always as identity,
  ats bigint[] not null,
  kinds bigint[] not null,
  actors bigint[] not null,
  -- the day on which they were recorded (usage_count.day), and their bytes
  day integer,
  bytes bigint not null default 0,
  -- 1: the service itself; 2: an import; else a row of change_recorder
  recorder bigint,
  recorded bigint,
  -- of the entries with a name; null where none has one
  documents uuid[],
  names text[] collate "C",
  sequences bigint[] not null,
  -- of the first one; null: they have none yet
  position bigint,
  -- that recorded them; null: unknown
  transaction xid8,
  primary key (tenant, delta)
  -- A row is updated once, and stays on its page.
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, fillfactor = 50);
create index change_delta_transaction on change_delta (tenant, transaction);
-- They live until the next fold: to compress them took more time than to write them.
alter table change_delta
  alter column ats set storage external, alter column sequences set storage external,
  alter column kinds set storage external, alter column actors set storage external,
  alter column documents set storage external, alter column names set storage external;

-- How many entries a cell of time holds, for a key: a kind, an actor, both, or neither (0 stands for any). Cells
-- nest: 1,024 days, 32 days, a day, an hour, a minute (levels 0 to 4), and the row of a cell has running totals over
-- those of its children that are not empty: upto[i] counts the children up to children[i]. Level 0 is always there. A
-- finer cell has its rows only where it is dense: where its kind, or its actor, or for key (0, 0) the tenant, has at
-- least change_dense() entries in it; a sparser one is counted from its entries.
create table change_tally (
  tenant text collate "C" not null,
  level smallint not null,
  actor bigint not null,
  kind bigint not null,
  bucket bigint not null,
  children smallint[] not null,
  upto bigint[] not null,
  primary key (tenant, level, bucket, actor, kind)
) with (fillfactor = 80);

-- How often a tenant's deltas have been folded: while this stays the same, so do its tallies.
create table change_folded (
  tenant text collate "C" primary key references tenant (tenant),
  folds bigint not null,
  -- the fold that the sealing of the tenant has followed, and when it looks again
  sealed bigint not null default -1,
  seal_after timestamptz
) with (fillfactor = 50);

-- When each way of a tenant recorded last, of all folded deltas. Recorder 0: nobody noted it. Deleted with the tenant
-- alone.
create table change_way (
  tenant   text collate "C" not null references tenant (tenant),
  recorder bigint not null,
  recorded bigint not null,
  primary key (tenant, recorder)
) with (fillfactor = 50);

-- The names of the paths of entries, each with the number that stands for it in change_entry.path_numbers. Two
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

-- The words of the last names of documents. A row leads to the documents whose hashes begin so: nearly always one.
-- What their entries say decides. No reference to the tenant: a look at it for each row took a third of the time to
-- write it.
create table change_document (
  -- the first 32 bits of the hashes of the id and of the entity type
  document integer not null,
  entity integer not null,
  tenant text collate "C" not null,
  -- folded, in order, with a blank between them
  words text collate "C" not null,
  primary key (tenant, document, entity)
);
-- Each word stands behind the tenant, so tenants share no list. A query reads all of the pending list, and its pages
-- stay in the index: so it is short.
create index change_document_words on change_document using gin (array_to_tsvector(string_to_array(
  tenant || '/' || replace(words, ' ', ' ' || tenant || '/'), ' '))) with (gin_pending_list_limit = 128);

-- Queries of the change history that a tenant keeps by name.
create table saved_view (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  primary key (tenant, id)
);

-- Positions, retention, erasure -------------------------------------------------------------------

-- The positions of entries: 1, 2, 3 … of a tenant (docs/decisions/positions.md). A row has those from `first` on, in
-- parallel arrays. The times and sequences of a row that reaches the end of its block of 4,096 positions are
-- relative: where `ats` is empty, the entry with the number n of the row has the time `oldest + at_highs[n] * 2^32 +
-- at_lows[n]` and the sequence `sequence_base + n + sequence_offsets[n]`.
create table change_position (
  tenant text collate "C" not null references tenant (tenant),
  first bigint not null,
  -- at and sequence of the entry; -1: no entry
  ats bigint[] not null,
  sequences bigint[] not null,
  -- milliseconds
  recorded bigint[] not null,
  -- random numbers that were given with the positions
  fingerprints integer[] not null,
  -- the least and the greatest time, without -1
  oldest bigint not null,
  newest bigint not null,
  -- What was visible when the positions were given, and where a cluster had the tenant (change_placement). Those of
  -- the newest row count. Null: unknown.
  snapshot pg_snapshot,
  placement xid8,
  -- of a relative row; at_highs -1: no entry
  sequence_base bigint,
  at_lows integer[],
  at_highs smallint[],
  sequence_offsets integer[],
  primary key (tenant, first)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
-- To compress times and sequences took most of the time of giving positions, and saved 10 bytes an entry. Those of
-- relative rows do compress.
alter table change_position alter column ats set storage external, alter column sequences set storage external;

-- What was done with a history besides recording it: entries erased, dropped, held. A receipt has a position as an
-- entry has one; in change_position its place is -1.
create table change_receipt (
  tenant text collate "C" not null references tenant (tenant),
  position bigint not null,
  -- JSON text in one line, without the position
  body text collate "C" not null,
  primary key (tenant, position)
);

-- What has been dropped, or is to be: nothing before `horizon`, nothing older than `keep_days` whole UTC days.
create table change_retention (
  tenant text collate "C" primary key references tenant (tenant),
  keep_days integer check (keep_days > 0),
  horizon bigint not null check (horizon % 86400000 = 0),
  -- on hold since then, and why: its horizon is that of this moment, and nothing of it is dropped
  held_since bigint,
  held_reason text collate "C"
);

-- How far receipts say what retention drops: up to position `until`, all entries from before `horizon`. While
-- receipts for a later horizon are being written, these are up to `reached` of `next_until`.
create table change_retention_told (
  tenant text collate "C" primary key references tenant (tenant),
  horizon bigint not null default 0,
  until bigint not null default 0,
  next_horizon bigint,
  next_until bigint,
  reached bigint not null default 0
);

create table change_erasure (
  tenant text collate "C" not null references tenant (tenant),
  erasure uuid not null,
  begun_at timestamptz not null,
  ended_at timestamptz,
  reason text collate "C" not null,
  -- how many it has changed
  entries bigint not null default 0,
  -- whom, and what stands in place of the name, sealed
  subject bytea not null,
  primary key (tenant, erasure)
);

-- Documents that were erased, by a hash of their type and id under installation.erasure_key: a capture that reads all
-- rows again recognises them.
create table change_erased_document (
  tenant text collate "C" not null references tenant (tenant),
  document uuid not null,
  primary key (tenant, document)
);

-- Proof (docs/decisions/proof.md) -----------------------------------------------------------------

-- The leaves of a tenant's Merkle tree, of the positions from `first` on. A row stays within a block of 256
-- positions, which is one tile.
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
  -- when the history was last verified against the log, and whether it matched; null: never
  checked_at timestamptz,
  check_right boolean,
  -- up to which size the witnesses have signed it, and when they are asked again
  cosigned bigint not null default 0,
  cosign_after timestamptz,
  primary key (tenant, origin)
);
create unique index proof_log_current on proof_log (tenant) where ended is null;

-- What is left of the proof of an entry of which a part was erased: the indexes of the hidden fields, their hashes
-- one after the other, and the cover of the others.
create table proof_redaction (
  tenant text collate "C" not null references tenant (tenant),
  position bigint not null,
  hidden integer[] not null,
  hashes bytea not null,
  cover bytea not null,
  primary key (tenant, position)
);

-- Sources -----------------------------------------------------------------------------------------

-- How far a file that grows has been recorded. `device`, `inode` and `head`, a hash of the first line, tell whether a
-- file is the one that was followed before; `device` and `inode` may be beyond bigint.
create table followed_file (
  tenant text collate "C" not null references tenant (tenant),
  path text collate "C" not null,
  device text collate "C" not null,
  inode text collate "C" not null,
  head text collate "C" not null,
  head_bytes bigint not null,
  recorded bigint not null,
  primary key (tenant, path)
);

-- How far `annals capture` has recorded the source's log (docs/decisions/capture.md). An installation has one
-- capture.
create table capture_position (
  singleton         boolean primary key default true check (singleton),
  -- of the source's cluster; it stays the same over a restart, a failover and a restored copy
  system_identifier text collate "C" not null,
  timeline          integer not null,
  slot              text collate "C" not null,
  -- preparing: the slot is being made. copying: and the tables are compared with the history. What was interrupted
  -- begins again.
  phase             text collate "C" not null check (phase in ('preparing', 'copying', 'recording')),
  -- the commit record of the last transaction that is recorded, wholly or in part, and the end of that record
  commit_lsn        pg_lsn not null,
  end_lsn           pg_lsn not null,
  -- tell that transaction from another one at the same place, as a restored source may have it; null: none yet
  xid               bigint,
  committed_at      bigint,
  -- how many of its row changes are recorded, and whether these are all
  changes           bigint not null default 0,
  complete          boolean not null default true,
  -- when the last recorded change happened; the next one is not before it
  last_at           bigint not null default 0,
  -- when this row was last written
  heartbeat         timestamptz not null default now()
);

-- What `annals capture` knows of each table that it records, so that it notices when a table was changed while it was
-- away.
create table capture_table (
  -- as the mapping names it
  name        text collate "C" primary key,
  -- OIDs of the source: of the table, and of its membership in the publication. Another one is another table, or one
  -- that was left out for a while.
  relation    bigint not null,
  publication bigint not null,
  -- as pg_class.relreplident has it
  identity    text collate "C" not null,
  -- in their order, each as [name, OID of its type], without computed ones: those of the row that was recorded last
  columns     jsonb not null,
  -- the tables below that hold rows: the name of each by its OID
  partitions  jsonb not null
);

-- Delivery ----------------------------------------------------------------------------------------

-- What a tenant wants to have sent. The document has masks in place of secrets.
create table subscription (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  -- all its secrets together
  sealed bytea,
  -- the client that made or last changed it, whose scopes it needs
  maker text collate "C" not null,
  primary key (tenant, id)
);

-- How far a subscription is, apart from it: this row changes with each delivery and stays small.
create table subscription_state (
  tenant text collate "C" not null,
  subscription text collate "C" not null,
  -- active, retrying, paused, suspended; of the latter two also why
  state text collate "C" not null,
  reason text collate "C",
  -- all positions up to this one have been read; the same as a cursor of the feed
  position bigint not null,
  fingerprint integer not null,
  cursor text collate "C" not null,
  -- when it has something to do besides new changes; nothing is sent before `rest_until`
  due_at timestamptz,
  rest_until timestamptz,
  -- how often the target was away, or too busy, in a row
  unreachable integer not null default 0,
  slowed integer not null default 0,
  failing_since timestamptz,
  -- the run of a process that delivers at the moment
  holder uuid,
  held_until timestamptz,
  matched bigint not null default 0,
  delivered bigint not null default 0,
  skipped bigint not null default 0,
  expired bigint not null default 0,
  dropped bigint not null default 0,
  waiting bigint not null default 0,
  parked bigint not null default 0,
  attempts bigint not null default 0,
  -- JSON texts
  last_delivery text collate "C",
  last_error text collate "C",
  primary key (tenant, subscription),
  foreign key (tenant, subscription) references subscription (tenant, id) on delete cascade
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- A second reader of a subscription, beside the live one.
create table subscription_replay (
  tenant text collate "C" not null,
  subscription text collate "C" not null,
  position bigint not null,
  fingerprint integer not null,
  -- the last position to read
  until bigint not null,
  primary key (tenant, subscription),
  foreign key (tenant, subscription) references subscription (tenant, id) on delete cascade
) with (fillfactor = 50);

-- A change that was read and is not delivered: it waits for its next attempt, or for an earlier change of its
-- document, or it is parked as failed. What was sent is not kept; the entry is read again.
create table delivery_waiting (
  tenant text collate "C" not null,
  subscription text collate "C" not null,
  position bigint not null,
  fingerprint integer not null,
  document uuid not null,
  attempts integer not null,
  due_at timestamptz not null,
  parked_at timestamptz,
  primary key (tenant, subscription, position),
  foreign key (tenant, subscription) references subscription (tenant, id) on delete cascade
);
create index delivery_waiting_document on delivery_waiting (tenant, subscription, document, position)
  where parked_at is null;
create index delivery_waiting_parked on delivery_waiting (tenant, subscription, parked_at) where parked_at is not null;

-- The last attempts of a subscription.
create table delivery_attempt (
  tenant text collate "C" not null,
  subscription text collate "C" not null,
  number bigint not null,
  at timestamptz not null,
  kind text collate "C" not null,
  outcome text collate "C" not null,
  first_position bigint,
  last_position bigint,
  status integer,
  duration integer,
  error text collate "C",
  -- the first KiB of what the target answered
  answer text collate "C",
  primary key (tenant, subscription, number),
  foreign key (tenant, subscription) references subscription (tenant, id) on delete cascade
);
create index delivery_attempt_at on delivery_attempt (tenant, at);

-- The batch that is under way to a target that takes batches, of the live reader or of a replay. Its bounds are
-- stored before the first attempt, so each attempt is the same batch: all matching changes behind `position` up to
-- `until`.
create table delivery_batch (
  tenant text collate "C" not null,
  subscription text collate "C" not null,
  kind text collate "C" not null,
  position bigint not null,
  fingerprint integer not null,
  until bigint not null,
  -- positions of the first and the last change, and how many there are
  first bigint not null,
  last bigint not null,
  changes integer not null,
  key uuid not null,
  begun_at timestamptz not null,
  -- SHA-256 of each text that an attempt was made with
  hashes text[] collate "C" not null default '{}',
  attempts integer not null default 0,
  due_at timestamptz not null,
  -- of an attempt that was taken and is not acknowledged yet
  receipt text collate "C",
  taken_at timestamptz,
  primary key (tenant, subscription, kind),
  foreign key (tenant, subscription) references subscription (tenant, id) on delete cascade
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- An object in a bucket that no manifest lists yet, by the UTC day (2026-11-23) on which its batch was begun.
create table delivery_object (
  tenant text collate "C" not null,
  subscription text collate "C" not null,
  day text collate "C" not null,
  first bigint not null,
  last bigint not null,
  changes integer not null,
  sha256 text collate "C" not null,
  primary key (tenant, subscription, day, first, last),
  foreign key (tenant, subscription) references subscription (tenant, id) on delete cascade
);

-- The first UTC day of which a bucket has no manifest yet.
create table delivery_manifest (
  tenant text collate "C" not null,
  subscription text collate "C" not null,
  day text collate "C" not null,
  attempts integer not null default 0,
  primary key (tenant, subscription),
  foreign key (tenant, subscription) references subscription (tenant, id) on delete cascade
);

-- What an alert has counted, as JSON text: times and positions, no value of the history.
create table delivery_alert (
  tenant text collate "C" not null,
  subscription text collate "C" not null,
  counted text collate "C" not null,
  primary key (tenant, subscription),
  foreign key (tenant, subscription) references subscription (tenant, id) on delete cascade
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- The desk: calls of models (docs/decisions/completions.md) ---------------------------------------

-- What a tenant has used and reserved of the shared token. Whatever changes a reservation locks this row first.
create table completion_quota (
  tenant          text collate "C" primary key references tenant (tenant),
  input_used      bigint not null default 0,
  output_used     bigint not null default 0,
  input_reserved  bigint not null default 0 check (input_reserved >= 0),
  output_reserved bigint not null default 0 check (output_reserved >= 0)
) with (fillfactor = 50);

-- A row a call that has not been settled. When its lease has ended its process counts as dead: it is charged in full,
-- and kept for a while, because figures that come late correct it.
create table completion_reservation (
  tenant      text collate "C" not null references tenant (tenant),
  reservation uuid not null,
  input       bigint not null,
  output      bigint not null,
  expires_at  timestamptz not null,
  charged     boolean not null default false,
  -- Whether the call may have left. One that has not is given back when its lease ends, and not charged.
  sent        boolean not null default true,
  -- the begin of the record of the call, which is written as it is where nobody settles the reservation
  call        jsonb,
  -- at most, in pico-USD (10^-12 US dollars); null: unknown
  cost        numeric,
  primary key (tenant, reservation)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index completion_reservation_open on completion_reservation (tenant, expires_at) where not charged;

-- Requests that came with an Idempotency-Key, which is kept as its hash. While one runs, `expires_at` is the lease of
-- its process; afterwards, how long the sealed outcome is kept.
create table completion_request (
  tenant      text collate "C" not null references tenant (tenant),
  client_id   text collate "C" not null,
  key_hash    bytea not null,
  attempt     uuid not null,
  fingerprint bytea not null,
  state       text not null check (state in ('running', 'succeeded', 'failed')),
  expires_at  timestamptz not null,
  outcome     bytea check ((outcome is null) = (state = 'running')),
  primary key (tenant, client_id, key_hash)
);
create index completion_request_expiry on completion_request (expires_at);

-- A call of a model: who made it, which model answered, and what it used, without any text. The id begins with the
-- milliseconds of `at` in hexadecimal digits (UUID version 7), so that the primary key has the order of time. Kept
-- for 90 days. No reference to the tenant, which would lock its row: call_record_write looks for the tenant, and who
-- deletes a tenant waits for the transactions that have still seen it.
create table call_record (
  tenant text collate "C" not null,
  id text collate "C" not null,
  at timestamptz not null,
  -- the operation that made it
  operation text collate "C" not null,
  -- whose key it was: own, or shared
  token text collate "C" not null,
  provider text collate "C" not null,
  model text collate "C" not null,
  -- the id of the client or the key
  client text collate "C" not null,
  agent text collate "C",
  -- whom the client names as its user
  end_user text collate "C",
  -- null: the provider gave no figure, and no quota was charged with one
  input_tokens bigint,
  -- parts of the input
  cached_tokens bigint,
  cache_write_tokens bigint,
  output_tokens bigint,
  -- a part of the output
  reasoning_tokens bigint,
  -- milliseconds; null: the answer was no stream
  first_token_ms integer,
  -- null: nobody knows when it ended
  duration_ms integer,
  finish_reason text collate "C",
  -- why it has no answer
  cause text collate "C",
  -- in pico-USD, and the first day of the price that it was counted with; null: unknown
  cost numeric,
  price_from text collate "C",
  -- the client that made the key; null: nobody, or no key made the call
  maker text collate "C",
  -- A call writes its record alone; the sums of many records are added together.
  unsummed boolean not null default false,
  primary key (tenant, id)
);
create index call_record_unsummed on call_record (tenant, id) where unsummed;

-- What the calls of a UTC day used and cost, together and by each of what tells them apart; kept when their records
-- are deleted. The row of all calls of a day is locked first, so writers of a day wait for each other there.
create table call_sum (
  tenant text collate "C" not null references tenant (tenant),
  -- 'all', or 'client', 'maker', 'agent', 'model', 'provider', 'user'; 'other model', 'other user': of those without
  -- a row of their own
  by text collate "C" not null,
  -- on which the calls began, as days since 1970
  day integer not null,
  -- '' where there is nothing to name
  name text collate "C" not null,
  calls bigint not null,
  -- calls whose cost nobody knows
  uncosted bigint not null,
  input bigint not null,
  output bigint not null,
  -- of the others, in pico-USD
  cost numeric not null,
  primary key (tenant, by, day, name)
);
create index call_sum_of_name on call_sum (tenant, by, name, day);

-- What the calls of a tenant, or of one client, agent or model of it, may use and cost in a period. The columns
-- besides the document are what a reservation reads.
create table budget (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  -- which calls count: 'all', or those of this client (its keys' too), agent or model
  by text collate "C" not null,
  name text collate "C" not null,
  -- 'day' or 'month' of UTC, or 'lifetime'
  period text collate "C" not null,
  -- in pico-USD; or else in tokens of input and output together
  limit_cost numeric,
  limit_tokens bigint,
  primary key (tenant, id),
  check (num_nonnulls(limit_cost, limit_tokens) = 1)
);

-- A threshold that a period has reached. Its e-mail is queued in the same transaction.
create table budget_alert (
  tenant text collate "C" not null references tenant (tenant),
  budget text collate "C" not null,
  -- the first day of the period
  first integer not null,
  -- percent of the limit
  threshold integer not null,
  primary key (tenant, budget, first, threshold),
  foreign key (tenant, budget) references budget (tenant, id) on delete cascade
);

-- A tenant with budgets whose sums have changed since its alerts were last evaluated. The number rises with each
-- change.
create table budget_due (
  tenant text collate "C" not null references tenant (tenant),
  changes bigint not null,
  primary key (tenant)
);

-- The desk: agents, jobs, mail (docs/decisions/agents.md) -----------------------------------------

-- The documents have masks in place of secrets.
create table agent (
  tenant         text collate "C" not null references tenant (tenant),
  id             text collate "C" not null,
  version        bigint not null,
  document       text collate "C" not null,
  fields         jsonb not null,
  sealed_key     bytea,
  enabled        boolean not null,
  -- configuration failures in a row
  failures       integer not null default 0,
  -- how often it was enabled, so that a chat that began before does not count
  term           bigint not null default 1,
  -- the headers that its servers of tools get, by server, together
  sealed_headers bytea,
  primary key (tenant, id)
);

-- What servers of tools said of their tools when they were read, so that a tool that has changed can be shown beside
-- the approved one.
create table agent_tool (
  tenant      text collate "C" not null,
  agent_id    text collate "C" not null,
  server      text collate "C" not null,
  -- hexadecimal, of the canonical JSON
  sha256      text collate "C" not null,
  -- the canonical JSON of name, description and inputSchema
  definition  text collate "C" not null,
  primary key (tenant, agent_id, server, sha256),
  foreign key (tenant, agent_id) references agent (tenant, id) on delete cascade
);

-- A row a session; its lock orders whatever is written of the session.
create table agent_session (
  tenant text collate "C" not null references tenant (tenant),
  id     text collate "C" not null,
  turns  bigint not null default 0,
  primary key (tenant, id)
);

-- The requests of a session in the order they came: each takes its place first, and waits until no earlier one runs.
-- One whose lease has ended belongs to a process that died. What was answered stays, as the context of later ones.
create table agent_turn (
  tenant            text collate "C" not null,
  session_id        text collate "C" not null,
  position          bigint not null,
  request_id        text collate "C" not null,
  agent_id          text collate "C" not null,
  state             text not null check (state in ('running', 'answered')),
  began_at          timestamptz not null default clock_timestamp(),
  expires_at        timestamptz not null,
  prompt_tokens     bigint not null default 0,
  completion_tokens bigint not null default 0,
  exchange          text collate "C" check ((exchange is null) = (state = 'running')),
  bytes             integer not null default 0,
  -- for clients that may read the change history alone
  from_history      boolean not null default false,
  -- the one log of the request, whichever process writes it
  log_id            text collate "C",
  primary key (tenant, session_id, position),
  foreign key (tenant, session_id) references agent_session (tenant, id)
);
create index agent_turn_running on agent_turn (tenant, session_id, position) where state = 'running';

-- Of logs and jobs, everybody who may read the row sees `document` and `fields`. `full_document` and `full_fields`
-- have besides what those see who may read the change history; null where there is nothing of that kind.
create table agent_request_log (
  tenant        text collate "C" not null references tenant (tenant),
  id            text collate "C" not null,
  document      text collate "C" not null,
  fields        jsonb not null,
  full_document text collate "C",
  full_fields   jsonb,
  primary key (tenant, id)
);
create index agent_request_log_request on agent_request_log (tenant, (fields ->> 'requestId'));

-- The sums are columns, so that they stay exact however the document shows them.
create table agent_session_log (
  tenant            text collate "C" not null references tenant (tenant),
  id                text collate "C" not null,
  duration          bigint not null,
  prompt_tokens     bigint not null,
  completion_tokens bigint not null,
  document          text collate "C" not null,
  fields            jsonb not null,
  full_document     text collate "C",
  full_fields       jsonb,
  primary key (tenant, id)
);

-- Jobs. Each worker that takes a job up counts `attempt` up, and what it writes then counts only while that is still
-- the number.
create table job (
  tenant        text collate "C" not null references tenant (tenant),
  id            text collate "C" not null,
  type          text collate "C" not null check (type in ('AGENT_CHAT', 'EXPORT')),
  status        text collate "C" not null check (status in ('in_progress', 'success', 'failure', 'skipped')),
  document      text collate "C" not null,
  fields        jsonb not null,
  -- what its worker needs, as JSON text
  input         text collate "C" not null,
  attempt       integer not null default 0,
  -- how often it was taken up since it last made progress
  stalled       integer not null default 0,
  -- a call to a vendor may have left, so it is not made again
  call_began    boolean not null default false,
  -- how far an export has come: which entries it is made of, and the last one that is in its file
  snapshot      pg_snapshot,
  since         bigint,
  last_at       bigint,
  last_sequence bigint,
  full_document text collate "C",
  full_fields   jsonb,
  -- the order of a tenant's jobs
  queued_at     timestamptz not null default now(),
  -- how long the worker that has the job counts as alive; null where the job waits for a worker
  held_until    timestamptz,
  -- where a cluster had the tenant when the snapshot was taken (change_placement)
  snapshot_on   xid8,
  -- of a chat: the place in its session, from the moment in which it was accepted
  session_id    text collate "C",
  place         bigint,
  -- the client that asked for an export; null: only clients that may read all jobs see it
  client        text collate "C",
  primary key (tenant, id)
) with (fillfactor = 70);
create index job_waiting on job (tenant, type, queued_at, id) where status = 'in_progress' and held_until is null;
create index job_held on job (held_until) where status = 'in_progress' and held_until is not null;
create index job_of_session on job (tenant, session_id, place) where status = 'in_progress';
create index job_of_client on job (tenant, client, id) where type = 'EXPORT';

-- The file of an export in pieces of some 1 MiB, each compressed (zstd) on its own; `bytes` is what it decompresses
-- to.
create table job_chunk (
  tenant  text collate "C" not null,
  job     text collate "C" not null,
  chunk   integer not null,
  bytes   bigint not null,
  content bytea not null,
  primary key (tenant, job, chunk),
  foreign key (tenant, job) references job (tenant, id) on delete cascade
);
alter table job_chunk alter column content set storage external;

-- E-mails, each sent once. `message_id` is the Message-ID, so that a repeat is recognised.
create table mail (
  tenant     text collate "C" not null references tenant (tenant),
  message_id text collate "C" not null,
  recipient  text collate "C" not null,
  subject    text collate "C" not null,
  content    text collate "C" not null,
  queued_at  timestamptz not null default now(),
  attempts   integer not null default 0,
  due_at     timestamptz not null default now(),
  sent_at    timestamptz,
  primary key (tenant, message_id)
);
create index mail_waiting on mail (due_at) where sent_at is null;
