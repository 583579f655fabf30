-- A person who signed in with a company's account makes keys of their own. Such a key has the scopes and the restriction of the session's
-- client, and ends with it. The session stays for its keys when it is over: no cookie leads to it, and the rules are asked as before.
alter table access_key
  add column made_by text collate "C",
  -- what the OpenID provider knows the person by
  add column issuer text collate "C",
  add column subject text collate "C";
create index access_key_made_by on access_key (tenant, made_by) where made_by is not null;

-- When the provider and the rules let the person in the last time since; null: when the client was made.
alter table oauth_client add column confirmed_at timestamptz;

alter table console_session add column for_keys boolean not null default false;
