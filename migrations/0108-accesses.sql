-- Who came in and what left: an event a row, and of the refusals of a client a row an hour. The id begins with the microseconds of `at`, in
-- hexadecimal digits, so that the primary key has the order of time.
create table access_event (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  at timestamptz not null,
  kind text collate "C" not null,
  client text collate "C" not null,
  name text collate "C" not null,
  -- what the OpenID provider knows a person by
  issuer text collate "C",
  subject text collate "C",
  details json not null,
  count bigint not null default 1,
  primary key (tenant, id)
);
