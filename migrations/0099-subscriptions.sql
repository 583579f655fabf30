-- What a tenant wants to have sent. As other documents a subscription is kept twice: as the JSON text that goes out, with masks in
-- place of secrets, and as jsonb for filters and sorting. `sealed`: all its secrets together.
create table subscription (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
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

-- A change that was read and is not delivered: it waits for its next attempt, or for an earlier change of its document, or it is parked
-- as failed. What was sent is not kept; the entry is read again.
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
create index delivery_waiting_document on delivery_waiting (tenant, subscription, document, position) where parked_at is null;
create index delivery_waiting_parked on delivery_waiting (tenant, subscription, parked_at) where parked_at is not null;

-- The last attempts of a subscription. `answer`: the first KiB of what the target said.
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
  answer text collate "C",
  primary key (tenant, subscription, number),
  foreign key (tenant, subscription) references subscription (tenant, id) on delete cascade
);
create index delivery_attempt_at on delivery_attempt (tenant, at);
