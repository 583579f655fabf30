-- Writes records of calls, idempotently. call_sum_records adds them to the totals. A call with unknown tokens costs
-- what was reserved; otherwise its cost is unknown. No-op for a tenant that is being deleted: its deletion waits for
-- transactions that still see it. Not synced to disk: the server has it even if the process is killed.
create function call_record_write(of_tenant text, calls jsonb) returns void language plpgsql as $$
begin
  if calls is null or calls = '[]' or not exists (select from tenant t where t.tenant = of_tenant) then
    return;
  end if;
  perform set_config('synchronous_commit', 'off', true);
  insert into call_record (tenant, id, at, operation, token, provider, model, client, maker, agent, end_user,
                           user_fixed, input_tokens, cached_tokens, cache_write_tokens, hour_cache_write_tokens,
                           output_tokens, reasoning_tokens, first_token_ms, duration_ms, finish_reason, cause, cost,
                           price_from, unsummed)
    select of_tenant, c.id, c.at, c.operation, c.token, c.provider, c.model, c.client, c.maker, c.agent, c.end_user,
           c.user_fixed, c.input_tokens, c.cached_tokens, c.cache_write_tokens, c.hour_cache_write_tokens,
           c.output_tokens, c.reasoning_tokens, c.first_token_ms, c.duration_ms, c.finish_reason, c.cause,
           coalesce(c.cost_bound, c.cost), c.price_from, true
      from jsonb_to_recordset(calls) as c (
        id text, at timestamptz, operation text, token text, provider text, model text, client text, maker text,
        agent text, end_user text, user_fixed boolean, input_tokens bigint, cached_tokens bigint,
        cache_write_tokens bigint, hour_cache_write_tokens bigint, output_tokens bigint, reasoning_tokens bigint,
        first_token_ms integer, duration_ms integer, finish_reason text, cause text, cost_bound numeric, cost numeric,
        price_from text)
    on conflict (tenant, id) do nothing;
end
$$;
