-- The path numbers of entries, with `rest` in place of those without room. In and out: for each entry the text of an
-- array. Reads no table. One join over all entries, because scanning the list for each number would take minutes for a
-- batch with very many names.
create function path_numbers_left(entries text[], without_room integer[], rest integer) returns text[]
language plpgsql immutable set plan_cache_mode = force_generic_plan set enable_nestloop = off set jit = off as $$
begin
  return array(
    with numbered as materialized (
      select e.place, n.number
        from unnest(entries) with ordinality as e (numbers, place)
        left join lateral unnest(e.numbers::integer[]) as n (number) on true
    ), without as materialized (
      select distinct w.number from unnest(without_room) as w (number)
    )
    select coalesce(
             array_agg(distinct case when w.number is null then n.number else rest end)
               filter (where n.number is not null), '{}')::text
      from numbered n left join without w on w.number = n.number
      group by n.place order by n.place);
end
$$;
