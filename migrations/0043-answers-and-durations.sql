-- What stored jobs and logs look like to clients of the API family. A job has what was asked as `request`, the answer as
-- `message` and a `metadata.version`. A log has its duration in whole seconds and in milliseconds. A JSON text is changed
-- as text, so that what jsonb cannot hold stays in it: a quotation mark within a string is always escaped, so the keys
-- below cannot stand in one.

update job set document = regexp_replace(document, '"message":', '"request":') where type = 'AGENT_CHAT' and fields ? 'message'
  and not fields -> 'metadata' ? 'version';
update job set full_document = regexp_replace(full_document, '"message":', '"request":')
  where type = 'AGENT_CHAT' and full_fields ? 'message' and not full_fields -> 'metadata' ? 'version';
update job set fields = fields - 'message' || jsonb_build_object('request', fields -> 'message')
  where type = 'AGENT_CHAT' and fields ? 'message' and not fields -> 'metadata' ? 'version';
update job set full_fields = full_fields - 'message' || jsonb_build_object('request', full_fields -> 'message')
  where type = 'AGENT_CHAT' and full_fields ? 'message' and not full_fields -> 'metadata' ? 'version';

update job set fields = jsonb_set(fields || jsonb_build_object('message', fields #> '{response,0,message}'),
      '{response,0,agentType}', '"generic"'),
    document = regexp_replace(regexp_replace(document, '"agentType": ?"custom"', '"agentType":"generic"'), '"response":',
      '"message":' || replace(substring(document from '"response": ?\[\{.*?"message": ?("(?:[^"\\]|\\.)*")'), '\', '\\') || ',"response":')
  where type = 'AGENT_CHAT' and jsonb_typeof(fields #> '{response,0,message}') = 'string' and not fields -> 'metadata' ? 'version';
update job set full_fields = jsonb_set(full_fields || jsonb_build_object('message', full_fields #> '{response,0,message}'),
      '{response,0,agentType}', '"generic"'),
    full_document = regexp_replace(regexp_replace(full_document, '"agentType": ?"custom"', '"agentType":"generic"'), '"response":',
      '"message":' || replace(substring(full_document from '"response": ?\[\{.*?"message": ?("(?:[^"\\]|\\.)*")'), '\', '\\') || ',"response":')
  where type = 'AGENT_CHAT' and jsonb_typeof(full_fields #> '{response,0,message}') = 'string' and not full_fields -> 'metadata' ? 'version';

-- The paths that clients without the change history do not get.
update job set fields = jsonb_set(fields, '{metadata,guarded}', replace(replace(
      (fields #> '{metadata,guarded}')::text, '"message"', '"request"'), '"response"', '"message", "response"')::jsonb),
    document = regexp_replace(document, '"guarded": ?\[[^]]*\]', '"guarded":' || replace(replace(
      (fields #> '{metadata,guarded}')::text, '"message"', '"request"'), '"response"', '"message", "response"'))
  where type = 'AGENT_CHAT' and fields -> 'metadata' ? 'guarded' and not fields -> 'metadata' ? 'version';
update job set full_fields = jsonb_set(full_fields, '{metadata,guarded}', replace(replace(
      (full_fields #> '{metadata,guarded}')::text, '"message"', '"request"'), '"response"', '"message", "response"')::jsonb),
    full_document = regexp_replace(full_document, '"guarded": ?\[[^]]*\]', '"guarded":' || replace(replace(
      (full_fields #> '{metadata,guarded}')::text, '"message"', '"request"'), '"response"', '"message", "response"'))
  where type = 'AGENT_CHAT' and full_fields -> 'metadata' ? 'guarded' and not full_fields -> 'metadata' ? 'version';

update job set fields = jsonb_set(fields, '{metadata,version}', '1'),
    document = regexp_replace(document, '"metadata": ?\{', '"metadata":{"version":1,'),
    full_fields = jsonb_set(full_fields, '{metadata,version}', '1'),
    full_document = regexp_replace(full_document, '"metadata": ?\{', '"metadata":{"version":1,')
  where not fields -> 'metadata' ? 'version';

update agent_request_log set
    fields = fields || jsonb_build_object('duration', ceil(seconds), 'durationMs', round(seconds * 1000)),
    document = regexp_replace(document, '"duration": ?[-+.0-9eE]+',
      '"duration":' || ceil(seconds) || ',"durationMs":' || round(seconds * 1000)),
    full_fields = full_fields || jsonb_build_object('duration', ceil(seconds), 'durationMs', round(seconds * 1000)),
    full_document = regexp_replace(full_document, '"duration": ?[-+.0-9eE]+',
      '"duration":' || ceil(seconds) || ',"durationMs":' || round(seconds * 1000))
  from (select tenant as of_tenant, id as of_id, (fields ->> 'duration')::numeric as seconds from agent_request_log) old
  where tenant = of_tenant and id = of_id and fields ? 'duration' and not fields ? 'durationMs';
update agent_session_log set
    fields = fields || jsonb_build_object('duration', ceil(duration / 1000.0), 'durationMs', duration),
    document = regexp_replace(document, '"duration": ?[-+.0-9eE]+',
      '"duration":' || ceil(duration / 1000.0) || ',"durationMs":' || duration),
    full_fields = full_fields || jsonb_build_object('duration', ceil(duration / 1000.0), 'durationMs', duration),
    full_document = regexp_replace(full_document, '"duration": ?[-+.0-9eE]+',
      '"duration":' || ceil(duration / 1000.0) || ',"durationMs":' || duration)
  where fields ? 'duration' and not fields ? 'durationMs';
