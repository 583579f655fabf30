-- Who may ask, and the keys that sign what they ask with.

-- The installation: all processes on one database are one, and without a public address its id names the
-- token issuer.
create table installation (
  singleton boolean primary key default true check (singleton),
  id        uuid not null default gen_random_uuid()
);
insert into installation default values;

-- A client belongs to one tenant, and its id begins with that tenant's name. The secret itself is not kept.
create table oauth_client (
  tenant      text collate "C" not null references tenant (tenant),
  client_id   text collate "C" not null,
  name        text not null,
  secret_hash bytea not null,
  scopes      text[] not null,
  created_at  timestamptz not null default now(),
  revoked_at  timestamptz,
  primary key (tenant, client_id)
);

-- The private keys, each sealed with the installation's secret key. Belongs to no tenant.
create table oauth_signing_key (
  kid        text primary key,
  sealed_key bytea not null,
  created_at timestamptz not null,
  -- From here on it signs nothing new; until then plus the longest life of a token it still verifies.
  retired_at timestamptz not null
);
