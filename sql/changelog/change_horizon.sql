-- The first moment, in milliseconds, whose history a tenant still has.
create function change_horizon(of_tenant text, now bigint) returns bigint language sql stable as $$
  select coalesce(max(greatest(horizon, (now / 86400000 - keep_days) * 86400000)), 0)
    from change_retention where tenant = of_tenant
$$;
