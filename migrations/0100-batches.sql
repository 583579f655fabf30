-- The batch that is under way to a target that takes batches, of the live reader or of a replay. Its bounds are stored before the first
-- attempt, so each attempt is the same batch: all matching changes behind `position` up to `until`.
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
