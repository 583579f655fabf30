-- The headers that an agent's servers of tools get, by server, sealed together.
alter table agent add column sealed_headers bytea;

-- What servers of tools said of their tools when they were read: so that a tool that has changed can be shown beside the approved one.
create table agent_tool (
  tenant      text collate "C" not null,
  agent_id    text collate "C" not null,
  server      text collate "C" not null,
  -- hexadecimal, of the canonical JSON
  sha256      text collate "C" not null,
  -- the canonical JSON of name, description and inputSchema
  definition  text collate "C" not null,
  primary key (tenant, agent_id, server, sha256),
  foreign key (tenant, agent_id) references agent (tenant, id) on delete cascade
);
