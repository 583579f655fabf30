-- Keys of programs that cannot renew tokens. A key is no client: it gets no token, and certain routes alone take it.
create table access_key (
  tenant       text collate "C" not null references tenant (tenant),
  key_id       text collate "C" not null,
  name         text not null,
  -- SHA-256 of the secret, which itself is not kept
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
  primary key (tenant, key_id)
);
