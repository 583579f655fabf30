-- The values of a field (entity, type, actor, actorId or onBehalfOf) with most entries, ties by code point, and the
-- number of all entries, also of those that have no such value.
-- It counts parts (see change_count_parts), and adds entries that the caller has counted by their kinds or actors.
-- Without any entry there is one row without a value. The settings are explained in change_count.
create function change_facet_values(of_tenant text, splits text[], actor_sets text[], kind_sets text[],
                                    moment_sets text[], befores bigint[], first_places integer[], field text,
                                    counted_keys bigint[], counted_entries bigint[], size bigint)
returns table (total bigint, value text, count bigint)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
set enable_sort = off set enable_incremental_sort = off as $$
declare
  keys bigint[];
  sums bigint[];
begin
  -- A cluster refuses a routine that reads tables in a statement about tables, so the names come after the counts.
  select array_agg(counted.key), array_agg(counted.entries) into keys, sums
    from (
      select one.key, sum(one.entries)::bigint as entries
        from (
          select part.key, part.entries
            from change_count_parts(of_tenant, splits, actor_sets, kind_sets, moment_sets, befores, first_places)
              as part
          union all
          select more.key, more.entries from unnest(counted_keys, counted_entries) as more (key, entries)
        ) as one
        group by one.key
    ) as counted;
  return query
    with named as materialized (
      -- Two recorders may have registered a name under two numbers.
      select n.value, sum(counted.entries)::bigint as count
        from unnest(keys, sums) as counted (key, entries)
        cross join lateral (
          select case field when 'actorId' then a.actor_id when 'onBehalfOf' then a.behalf_name else a.name end as value
            from change_actor a
            where field in ('actor', 'actorId', 'onBehalfOf') and a.tenant = of_tenant and a.actor = counted.key
          union all
          select case field when 'entity' then k.entity else k.type end from change_kind k
            where field in ('entity', 'type') and k.tenant = of_tenant and k.kind = counted.key
        ) as n
        group by 1 having sum(counted.entries) > 0
    )
    select (select sum(named.count) from named)::bigint, top.value, top.count
      from (select) as one
      left join lateral (
        select * from named where named.value is not null order by named.count desc, named.value limit size
      ) as top on true
      order by top.count desc, top.value;
end
$$;
