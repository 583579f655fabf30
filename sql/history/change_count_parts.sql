-- Counts parts with change_count. Each part has a split, a selection, moments that begin its ranges, and the place of
-- its first range. Rows of one place and key are added up.
create function change_count_parts(of_tenant text, splits text[], actor_sets text[], kind_sets text[],
                                   moment_sets text[], befores bigint[], first_places integer[])
returns table (place integer, key bigint, entries bigint)
language plpgsql stable as $$
begin
  return query
    select part.first_place + count.range - 1, count.key, sum(count.entries)::bigint
      from unnest(splits, actor_sets, kind_sets, moment_sets, befores, first_places)
        as part (split, actors, kinds, moments, before, first_place)
      cross join lateral change_count(of_tenant, part.actors::bigint[], part.kinds::bigint[], part.moments::bigint[],
                                      part.before, part.split) as count
      group by 1, 2;
end
$$;
