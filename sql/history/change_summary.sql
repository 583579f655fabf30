-- How many entries of a tenant are kept, and the times of the oldest and the newest one.
create function change_summary(of_tenant text, now bigint) returns table (entries bigint, oldest bigint, newest bigint)
language plpgsql stable
-- see change_count
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
set enable_sort = off set enable_incremental_sort = off as $$
declare
  since constant bigint := change_horizon(of_tenant, now);
begin
  entries := change_total(of_tenant, array['{0}'], array['{0}'], since, null);
  oldest := (select min(e.at) from change_entry e where e.tenant = of_tenant and e.at >= since);
  newest := (select max(e.at) from change_entry e where e.tenant = of_tenant and e.at >= since);
  return next;
end
$$;
