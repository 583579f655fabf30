-- What change_counts counts of several parts. Each part has a label, a selection, moments that begin its ranges, and the place of its
-- first range. Rows of one label, place and key are added up.
create function change_count_parts(of_tenant text, labels text[], actor_sets text[], kind_sets text[], moment_sets text[],
                                   befores bigint[], first_places integer[], split text)
returns table (label text, place integer, key bigint, entries bigint)
language plpgsql stable as $$
begin
  return query
    select part.label, part.first_place + count.range - 1, count.key, sum(count.entries)::bigint
      from unnest(labels, actor_sets, kind_sets, moment_sets, befores, first_places)
        as part (label, actors, kinds, moments, before, first_place)
      cross join lateral change_counts(of_tenant, part.actors::bigint[], part.kinds::bigint[], part.moments::bigint[], part.before,
                                       split) as count
      group by 1, 2, 3;
end
$$;
