-- Settles one reservation of the shared token and writes the call's record: completion_quota_apply in half the time,
-- without JSON. Returns whether it did; completion_quota_apply handles the others: those charged when their lease
-- ended, and those of budgets alone. Not synced to disk: a settlement lost in a server crash leaves its reservation,
-- which is charged in full.
create function completion_quota_settle(of_tenant text, settled uuid,
                                        id text, at timestamptz, operation text, token text, provider text,
                                        model text, client text, maker text, agent text, end_user text,
                                        user_fixed boolean, input_tokens bigint, cached_tokens bigint,
                                        cache_write_tokens bigint, hour_cache_write_tokens bigint,
                                        output_tokens bigint, reasoning_tokens bigint,
                                        first_token_ms integer, duration_ms integer, finish_reason text, cause text,
                                        cost numeric, price_from text)
returns boolean language plpgsql as $$
declare
  held_input bigint;
  held_output bigint;
begin
  -- Locked first, as in every change of a reservation.
  perform from completion_quota q where q.tenant = of_tenant for update;
  delete from completion_reservation r
    where r.tenant = of_tenant and r.reservation = settled and not r.charged and call_reserves_quota(r.call)
    returning r.input, r.output into held_input, held_output;
  if not found then
    return false;
  end if;
  update completion_quota q
    set input_used = q.input_used + completion_quota_settle.input_tokens,
        output_used = q.output_used + completion_quota_settle.output_tokens,
        input_reserved = q.input_reserved - held_input, output_reserved = q.output_reserved - held_output
    where q.tenant = of_tenant;
  perform call_record_add(of_tenant, id, at, operation, token, provider, model, client, maker, agent, end_user,
                          user_fixed, input_tokens, cached_tokens, cache_write_tokens, hour_cache_write_tokens,
                          output_tokens, reasoning_tokens, first_token_ms, duration_ms, finish_reason, cause, cost,
                          price_from);
  return true;
end
$$;
