-- Clients and keys that other clients make over HTTP.
alter table oauth_client
  -- The clients through which it was made, the outermost first; null: an operator made it. It has at most the rights of
  -- each, and ends with any of them.
  add column makers text[] collate "C",
  -- what the OpenID provider knows the person by who made it
  add column issuer text collate "C",
  add column subject text collate "C",
  -- null: never
  add column expires_at timestamptz,
  -- how often its secret was replaced: tokens of an earlier one are refused; null: never
  add column rotations integer,
  -- the last request: to the minute; null: none
  add column used_at timestamptz,
  add column used_address text collate "C";
create index oauth_client_made on oauth_client (tenant) where makers is not null;

-- of the last request
alter table access_key add column used_address text collate "C";
