-- Reserves for one call on the shared token that is about to leave, if the quota suffices and there are no budgets:
-- completion_quota_apply and completion_quota_send in half the time. Returns whether it reserved; if not,
-- completion_quota_apply decides, which also ends expired reservations. Commits durably, together with all earlier
-- commits, before the call leaves.
create function completion_quota_reserve_sent(of_tenant text, new_reservation uuid, new_input bigint, new_output bigint,
                                              lease interval, input_limit bigint, output_limit bigint, new_call jsonb)
returns boolean language plpgsql as $$
declare
  moment constant timestamptz := clock_timestamp();
begin
  if exists (select from completion_reservation r
               where r.tenant = of_tenant and not r.charged and r.expires_at <= moment)
    or exists (select from budget b where b.tenant = of_tenant)
  then
    return false;
  end if;
  update completion_quota q
    set input_reserved = q.input_reserved + new_input, output_reserved = q.output_reserved + new_output
    where q.tenant = of_tenant
      and q.input_used + q.input_reserved + new_input <= input_limit
      and q.output_used + q.output_reserved + new_output <= output_limit;
  if not found then
    return false;
  end if;
  insert into completion_reservation (tenant, reservation, input, output, cost, expires_at, sent, call)
    values (of_tenant, new_reservation, new_input, new_output, call_bound(new_call -> 'price', new_input, new_output),
            clock_timestamp() + lease, true, new_call);
  return true;
end
$$;
