-- What a tenant sees of its sessions, and what ends them at the OpenID provider.
alter table console_session
  -- of the last request, to the minute; null: none since the migration
  add column seen_at timestamptz,
  -- where the last noted request came from: the address, and the program as it names itself
  add column address text collate "C",
  add column program text,
  -- the provider's session, as the ID token names it
  add column sid text collate "C",
  -- the result of the last sign-in test that the session began
  add column sealed_test bytea;

-- Logout tokens that a provider has sent, so that none counts twice.
create table logout_token (
  -- of the issuer and the id of the token
  hash       bytea primary key,
  expires_at timestamptz not null
);
