-- Charges in full what has outlived its lease. The caller holds the lock on the tenant's quota.
create function completion_quota_charge_expired(of_tenant text) returns void language sql as $$
  with expired as (
    update completion_reservation set charged = true
      where tenant = of_tenant and not charged and expires_at <= clock_timestamp()
      returning input, output
  )
  update completion_quota
    set input_used = input_used + total.input, output_used = output_used + total.output,
        input_reserved = input_reserved - total.input, output_reserved = output_reserved - total.output
    from (select sum(input)::bigint as input, sum(output)::bigint as output from expired) as total
    where tenant = of_tenant and total.input is not null
$$;
