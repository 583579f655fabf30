-- Charges in full what has outlived its lease. The caller holds the lock on the tenant's quota. It counts as used on the
-- day on which the lease ended, so that a later correction finds the same day.
create function completion_quota_charge_expired(of_tenant text) returns void language plpgsql as $$
declare
  moment constant timestamptz := clock_timestamp();
  days integer[];
  inputs bigint[];
  outputs bigint[];
begin
  with expired as (
    update completion_reservation set charged = true
      where tenant = of_tenant and not charged and expires_at <= moment
      returning input, output, expires_at
  )
  select array_agg(usage_day(expires_at)), array_agg(input), array_agg(output) into days, inputs, outputs from expired;
  if days is null then
    return;
  end if;
  update completion_quota
    set input_used = input_used + total.input, output_used = output_used + total.output,
        input_reserved = input_reserved - total.input, output_reserved = output_reserved - total.output
    from (select sum(i.input)::bigint as input, sum(i.output)::bigint as output from unnest(inputs, outputs) as i (input, output)) as total
    where tenant = of_tenant;
  perform usage_add_tokens(of_tenant, days, inputs, outputs);
end
$$;
