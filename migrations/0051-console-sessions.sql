-- Sessions of the console, and the links that begin one. docs/decisions/0031-console-sessions.md tells why it is laid out like this.

-- A client that a link made has no secret.
alter table oauth_client alter column secret_hash drop not null;

create table console_session (
  tenant      text collate "C" not null references tenant (tenant),
  -- SHA-256 of the secret in the cookie, which itself is not kept.
  secret_hash bytea not null,
  client_id   text collate "C" not null,
  scopes      text[] not null,
  -- Whether a link made the client, which then ends with the session.
  by_link     boolean not null,
  created_at  timestamptz not null default clock_timestamp(),
  expires_at  timestamptz not null,
  primary key (tenant, secret_hash),
  foreign key (tenant, client_id) references oauth_client (tenant, client_id)
);
create index console_session_client on console_session (tenant, client_id, created_at);

create table console_link (
  tenant      text collate "C" not null references tenant (tenant),
  -- SHA-256 of the secret in the link.
  secret_hash bytea not null,
  client_id   text collate "C" not null,
  expires_at  timestamptz not null,
  primary key (tenant, secret_hash),
  foreign key (tenant, client_id) references oauth_client (tenant, client_id)
);
