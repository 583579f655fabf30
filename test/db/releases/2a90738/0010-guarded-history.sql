-- What jobs and logs tell of the change history is only for clients that may read it (docs/decisions/0007-agents.md).
-- `document` and `fields` are what everybody sees who may read the row; `full_document` and `full_fields` the same with
-- what those see besides who may read the change history, and null where there is nothing of that kind.

alter table job add column full_document text collate "C", add column full_fields jsonb;
alter table agent_request_log add column full_document text collate "C", add column full_fields jsonb;
alter table agent_session_log add column full_document text collate "C", add column full_fields jsonb;

-- What is there already. Of the answer to a chat nobody noted whether the change history is in it, so it counts as such.
update job set full_fields = jsonb_set(fields, '{metadata,guarded}',
    '["metadata.q", "metadata.entries", "metadata.bytes", "metadata.error.message"]')
  where type = 'EXPORT' and full_fields is null;
update job set full_fields = jsonb_set(fields, '{metadata,guarded}', '["response"]')
  where type = 'AGENT_CHAT' and fields ? 'response' and full_fields is null;
update job set full_document = full_fields::text,
    fields = full_fields - 'response'
      #- '{metadata,q}' #- '{metadata,entries}' #- '{metadata,bytes}' #- '{metadata,error,message}'
  where full_fields is not null and full_document is null;
update job set document = fields::text where full_fields is not null;

-- Lines that tell what a tool was asked and found.
create function guarded_lines(log jsonb, change jsonb) returns jsonb language sql as $$
  select jsonb_set(log, '{messages}', coalesce(jsonb_agg(
    case when line ->> 'message' like 'Tool round %' then line || change else line end order by place), '[]'))
    from jsonb_array_elements(log -> 'messages') with ordinality lines (line, place)
$$;
update agent_request_log set full_fields = guarded_lines(fields, '{"guarded": true}')
  where fields @? '$.messages[*].message ? (@ starts with "Tool round ")' and full_fields is null;
update agent_session_log set full_fields = guarded_lines(fields, '{"guarded": true}')
  where fields @? '$.messages[*].message ? (@ starts with "Tool round ")' and full_fields is null;
update agent_request_log set full_document = full_fields::text, fields = guarded_lines(full_fields,
    '{"message": "A call of a tool: what it asked and found is shown to clients that may read the change history."}')
  where full_fields is not null and full_document is null;
update agent_session_log set full_document = full_fields::text, fields = guarded_lines(full_fields,
    '{"message": "A call of a tool: what it asked and found is shown to clients that may read the change history."}')
  where full_fields is not null and full_document is null;
update agent_request_log set document = fields::text where full_fields is not null;
update agent_session_log set document = fields::text where full_fields is not null;
drop function guarded_lines;
