-- Which tenants have work that waits, as one process found it a moment ago for all of them. docs/decisions/0087-one-look-for-work.md
-- tells why. What a crash empties is found again.
create unlogged table found_work (
  -- Stands for the list of questions that one version of Annals asks.
  questions uuid primary key,
  looked_at timestamptz not null default '-infinity',
  -- After it the answers are too old.
  fresh_for interval not null default '0 s',
  -- The tenants of each question.
  tenants   jsonb not null default '[]'
) with (fillfactor = 50);
