-- Ends reservations past their lease: releases those whose call was never sent, and charges the others in full. Returns
-- the records of these for the caller to write, as abandoned calls. The caller holds the lock on the tenant's quota.
create function completion_quota_charge_expired(of_tenant text) returns jsonb language plpgsql as $$
declare
  moment constant timestamptz := clock_timestamp();
  freed_input bigint;
  freed_output bigint;
  charged_input bigint;
  charged_output bigint;
  calls jsonb;
begin
  with freed as (
    delete from completion_reservation
      where tenant = of_tenant and not charged and not sent and expires_at <= moment
      returning input, output, call
  )
  select coalesce(sum(input) filter (where call_reserves_quota(call)), 0),
         coalesce(sum(output) filter (where call_reserves_quota(call)), 0)
    into freed_input, freed_output from freed;
  with expired as (
    update completion_reservation set charged = true
      where tenant = of_tenant and not charged and sent and expires_at <= moment
      returning input, output, cost, call
  )
  select coalesce(sum(input) filter (where call_reserves_quota(call)), 0),
         coalesce(sum(output) filter (where call_reserves_quota(call)), 0),
         jsonb_agg(call || jsonb_build_object('input_tokens', input, 'output_tokens', output, 'cost_bound', cost,
                                              'price_from', call -> 'price' -> 'from', 'cause', 'cancelled'))
           filter (where call is not null)
    into charged_input, charged_output, calls from expired;
  if charged_input + charged_output + freed_input + freed_output > 0 then
    update completion_quota
      set input_used = input_used + charged_input, output_used = output_used + charged_output,
          input_reserved = input_reserved - charged_input - freed_input,
          output_reserved = output_reserved - charged_output - freed_output
      where tenant = of_tenant;
  end if;
  return calls;
end
$$;
