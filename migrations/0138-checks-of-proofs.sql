-- When the history was verified against the log last, and whether it was what was sealed. Null: never.
alter table proof_log add column checked_at timestamptz, add column check_right boolean;
