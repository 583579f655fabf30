-- Ends the reservations that have outlived their lease. The caller holds the lock on the tenant's quota. One whose
-- call was never sent is given back. The others are charged in full: they count as used on the day on which the lease
-- ended, so that a later correction finds the same day. Answers the records of these, which the caller writes: they say
-- that nobody waited for an answer any more.
create function completion_quota_charge_expired(of_tenant text) returns jsonb language plpgsql as $$
declare
  moment constant timestamptz := clock_timestamp();
  freed_input bigint;
  freed_output bigint;
  days integer[];
  inputs bigint[];
  outputs bigint[];
  calls jsonb;
begin
  with freed as (
    delete from completion_reservation
      where tenant = of_tenant and not charged and not sent and expires_at <= moment
      returning input, output
  )
  select coalesce(sum(input), 0), coalesce(sum(output), 0) into freed_input, freed_output from freed;
  with expired as (
    update completion_reservation set charged = true
      where tenant = of_tenant and not charged and sent and expires_at <= moment
      returning input, output, expires_at, call
  )
  select array_agg(usage_day(expires_at)), array_agg(input), array_agg(output),
         jsonb_agg(call || jsonb_build_object('input_tokens', input, 'output_tokens', output, 'cause', 'cancelled'))
           filter (where call is not null)
    into days, inputs, outputs, calls from expired;
  if days is null and freed_input = 0 and freed_output = 0 then
    return null;
  end if;
  update completion_quota
    set input_used = input_used + total.input, output_used = output_used + total.output,
        input_reserved = input_reserved - total.input - freed_input,
        output_reserved = output_reserved - total.output - freed_output
    from (select coalesce(sum(i.input), 0)::bigint as input, coalesce(sum(i.output), 0)::bigint as output
            from unnest(inputs, outputs) as i (input, output)) as total
    where tenant = of_tenant;
  if days is not null then
    perform usage_add_tokens(of_tenant, days, inputs, outputs);
  end if;
  return calls;
end
$$;
