-- Counts the entries of parts by type in each range: what change_count_parts counts by kind, added up by type. The
-- settings are explained in change_count.
create function change_count_types(of_tenant text, splits text[], actor_sets text[], kind_sets text[],
                                   moment_sets text[], befores bigint[], first_places integer[])
returns table (type text, place integer, entries bigint)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
set enable_sort = off set enable_incremental_sort = off as $$
declare
  places integer[];
  keys bigint[];
  sums bigint[];
begin
  -- A cluster refuses a routine that reads tables in a statement about tables, so the types come after the counts.
  select array_agg(part.place), array_agg(part.key), array_agg(part.entries) into places, keys, sums
    from change_count_parts(of_tenant, splits, actor_sets, kind_sets, moment_sets, befores, first_places) as part;
  return query
    select k.type, counted.place, sum(counted.entries)::bigint
      from unnest(places, keys, sums) as counted (place, key, entries)
      join change_kind k on k.tenant = of_tenant and k.kind = counted.key
      group by 1, 2;
end
$$;
