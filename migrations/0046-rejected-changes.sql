-- Changes that can never be recorded, so that the way they came by goes on past them. `tenant` is empty where it is unknown or
-- malformed. `sealed` has the change as a line of an import, masked; null where its masks could not be applied.
create table change_rejected (
  tenant text collate "C" not null,
  id uuid not null,
  way text collate "C" not null,
  recorder text collate "C",
  position text collate "C" not null,
  reason text collate "C" not null,
  sealed bytea,
  kept_at timestamptz not null default now(),
  primary key (tenant, id)
);
