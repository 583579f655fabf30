-- How many entries of each type parts have in each range, see change_count_parts. The parts are told apart by kind or by type.
create function change_count_types(of_tenant text, splits text[], actor_sets text[], kind_sets text[], moment_sets text[],
                                   befores bigint[], first_places integer[])
returns table (type text, place integer, entries bigint)
language plpgsql stable set jit = off as $$
declare
  places integer[];
  keys bigint[];
  sums bigint[];
begin
  -- A cluster refuses a routine that reads tables in a statement about tables, so the types come after the counts.
  select array_agg(part.place), array_agg(part.key), array_agg(part.entries) into places, keys, sums
    from change_count_parts(of_tenant, splits, actor_sets, kind_sets, moment_sets, befores, first_places) as part;
  return query
    select n.type, counted.place, sum(counted.entries)::bigint
      from unnest(places, keys, sums) as counted (place, key, entries)
      join (
        select k.kind, k.type from change_kind k where k.tenant = of_tenant
        union all
        select change_type_number(t.type), t.type from unnest(array['create', 'update', 'delete']) as t (type)
      ) as n on n.kind = counted.key
      group by 1, 2;
end
$$;
