-- Agents, their sessions and their logs. docs/decisions/0007-agents.md tells why it is laid out like this. Agents and
-- logs are documents that are kept twice, as those of custom entities are: JSON text, and jsonb for filters and sorting.

-- The key of an agent is kept sealed, and in its documents there is a mask. `failures` counts configuration failures
-- in a row; `term` how often it was enabled, so that a chat that began before does not count.
create table agent (
  tenant     text collate "C" not null references tenant (tenant),
  id         text collate "C" not null,
  version    bigint not null,
  document   text collate "C" not null,
  fields     jsonb not null,
  sealed_key bytea,
  enabled    boolean not null,
  failures   integer not null default 0,
  term       bigint not null default 1,
  primary key (tenant, id)
);

-- One row a session; its lock orders whatever is written of the session.
create table agent_session (
  tenant text collate "C" not null references tenant (tenant),
  id     text collate "C" not null,
  turns  bigint not null default 0,
  primary key (tenant, id)
);

-- The requests of a session in the order they came: each takes its place first, and waits until no earlier one runs.
-- One whose lease has ended belongs to a process that died. What was answered stays, as the context of later ones;
-- `from_history` marks what only clients that may read the change history are told.
create table agent_turn (
  tenant            text collate "C" not null,
  session_id        text collate "C" not null,
  position          bigint not null,
  request_id        text collate "C" not null,
  agent_id          text collate "C" not null,
  state             text not null check (state in ('running', 'answered')),
  began_at          timestamptz not null default clock_timestamp(),
  expires_at        timestamptz not null,
  prompt_tokens     bigint not null default 0,
  completion_tokens bigint not null default 0,
  exchange          text collate "C" check ((exchange is null) = (state = 'running')),
  bytes             integer not null default 0,
  from_history      boolean not null default false,
  primary key (tenant, session_id, position),
  foreign key (tenant, session_id) references agent_session (tenant, id)
);
create index agent_turn_running on agent_turn (tenant, session_id, position) where state = 'running';

create table agent_request_log (
  tenant   text collate "C" not null references tenant (tenant),
  id       text collate "C" not null,
  document text collate "C" not null,
  fields   jsonb not null,
  primary key (tenant, id)
);

-- Sums as numbers of their own, so that they stay exact however the document shows them.
create table agent_session_log (
  tenant            text collate "C" not null references tenant (tenant),
  id                text collate "C" not null,
  duration          bigint not null,
  prompt_tokens     bigint not null,
  completion_tokens bigint not null,
  document          text collate "C" not null,
  fields            jsonb not null,
  primary key (tenant, id)
);
