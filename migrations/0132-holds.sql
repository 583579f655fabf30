-- A tenant on hold: since when (milliseconds since 1970), and why. Its horizon is that of this moment, and nothing of it is dropped.
alter table change_retention add column held_since bigint;
alter table change_retention add column held_reason text collate "C";

-- How far receipts say what retention drops: up to position `until`, all entries from before `horizon`. While receipts for a later
-- horizon are being written, these are up to `reached` of `next_until`.
create table change_retention_told (
  tenant text collate "C" primary key references tenant (tenant),
  horizon bigint not null default 0,
  until bigint not null default 0,
  next_horizon bigint,
  next_until bigint,
  reached bigint not null default 0
);
