-- Where an access came from: the address, the program as it names itself, and the session of the console that it began, used or ended.
alter table access_event
  add column address text collate "C",
  add column program text,
  add column session text collate "C";

-- A renewal under way has a time of its own: `checked_at` alone could not tell a session that was checked from one whose check failed.
-- The ID token is the hint with which its person signs out at the provider.
alter table console_session
  add column renewing_until timestamptz,
  add column sealed_id_token bytea;
