-- Sessions of people who signed in with their company's account. What the provider knows them by; without a refresh token the session ends
-- with what the provider said, and nobody asks again.
alter table console_session
  add column issuer text,
  add column subject text,
  -- the refresh token, sealed
  add column sealed_renewal bytea,
  -- every tenant that lets the person in
  add column tenants text[] collate "C",
  -- when the rules were asked last; null where nobody asks again
  add column checked_at timestamptz;

create index console_session_check on console_session (checked_at) where checked_at is not null;
