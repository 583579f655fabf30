-- What people allow programs that sign in with OAuth.
create table access_grant (
  tenant         text collate "C" not null references tenant (tenant),
  grant_id       text collate "C" not null,
  -- what the program calls itself
  name           text not null,
  -- of the program's client id
  program_hash   bytea not null,
  -- where its metadata document is; null: it registered itself
  program_url    text collate "C",
  -- where the person was sent back to
  redirect_uri   text collate "C" not null,
  -- the SHA-256 of the verifier that redeems the code (RFC 7636)
  challenge      text collate "C" not null,
  -- The session whose end ends the grant, and its client, whose rights count now. The session of a sign-in that was
  -- made for the grant has no cookie.
  session_hash   bytea not null,
  client_id      text collate "C" not null,
  of_own_sign_in boolean not null,
  -- what the OpenID provider knows the person by
  issuer         text collate "C",
  subject        text collate "C",
  -- the key of the grant's code and tokens
  sealed_key     bytea not null,
  created_at     timestamptz not null default clock_timestamp(),
  -- until the code is redeemed, that of the code
  expires_at     timestamptz not null,
  redeemed_at    timestamptz,
  -- of the refresh token, and since when
  generation     integer not null default 0,
  rotated_at     timestamptz,
  -- the last request: to the minute; null: none
  used_at        timestamptz,
  used_address   text collate "C",
  primary key (tenant, grant_id),
  foreign key (tenant, session_hash) references console_session (tenant, secret_hash) on delete cascade
);
create index access_grant_session on access_grant (tenant, session_hash);

-- for whom a program acted
alter table access_event add column on_behalf_of text;
