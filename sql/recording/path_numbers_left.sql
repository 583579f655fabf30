-- The numbers of entries, with that of the rest in the place of those for which there was no room. In and out: of each
-- entry the text of an array. It reads no table. All entries are one join: to look through the list for each number
-- would take minutes where a batch has very many names.
create function path_numbers_left(entries text[], without_room integer[], rest integer) returns text[]
language plpgsql immutable set plan_cache_mode = force_generic_plan set enable_nestloop = off set jit = off as $$
begin
  return array(
    with given as materialized (
      select e.place, n.number
        from unnest(entries) with ordinality as e (numbers, place)
        left join lateral unnest(e.numbers::integer[]) as n (number) on true
    ), without as materialized (
      select distinct one as number from unnest(without_room) as one
    )
    select coalesce(
             array_agg(distinct case when w.number is null then g.number else rest end)
               filter (where g.number is not null), '{}')::text
      from given g left join without w on w.number = g.number
      group by g.place order by g.place);
end
$$;
