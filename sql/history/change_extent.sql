-- How many entries of these kinds (null: of any) a tenant has from a moment on, and how many are in no tally yet.
create function change_extent(of_tenant text, since bigint, kinds bigint[])
returns table (entries bigint, pending bigint)
language plpgsql stable
-- see change_count
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
set enable_sort = off set enable_incremental_sort = off as $$
begin
  entries := change_total(of_tenant, array['{0}'], array[coalesce(kinds, '{0}')::text], since, null);
  pending := (select coalesce(sum(cardinality(d.ats)), 0) from change_delta d where d.tenant = of_tenant);
  return next;
end
$$;
