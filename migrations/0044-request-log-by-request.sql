-- A request log is found by its `requestId` as well.
create index agent_request_log_request on agent_request_log (tenant, (fields ->> 'requestId'));
