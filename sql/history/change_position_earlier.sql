-- How many entries of a tenant, from a moment on, were recorded before there were positions.
create function change_position_earlier(of_tenant text, since bigint) returns bigint
language plpgsql stable
-- see change_count
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
set enable_sort = off set enable_incremental_sort = off as $$
begin
  return change_total(of_tenant, array['{0}'], array['{0}'], since, null) - (
    select count(*)
      from change_delta d
      cross join lateral unnest(d.ats) as entry (at)
      where d.tenant = of_tenant and d.position is null and entry.at >= since);
end
$$;
