-- The first moment, in milliseconds, whose history a tenant still keeps. It does not move while the tenant is on hold.
create function change_horizon(of_tenant text, now bigint) returns bigint language plpgsql stable as $$
begin
  return (
    select coalesce(max(greatest(
        r.horizon, (least(now, r.held_since) / 86400000 - r.keep_days) * 86400000)), 0)
      from change_retention r where r.tenant = of_tenant);
end
$$;
