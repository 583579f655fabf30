-- The times of the keys' entries in [since, before), read from the entries themselves. Here and below, what is read for a
-- key is fenced by "offset 0": each key is a range of an index, and a plan from when the tables were small must not
-- go through all of what an import has brought since, once for each key. And it is read in order, which only the index has
-- whose range it is: while the tables are empty, to skip through another one seems to cost the same.
create function change_direct(of_tenant text, kind_sets text[], places integer[], actors bigint[], kinds bigint[],
                              since bigint, before bigint)
returns table (at bigint) language sql stable as $$
  select e.at
    from unnest(places, actors, kinds) as key (place, actor, kind)
    cross join lateral (
      select one.at from change_entry one
        where one.tenant = of_tenant and one.kind = key.kind and one.at >= since and one.at < before
        order by one.at, one.sequence offset 0
    ) as e
    where key.kind > 0
  union all
  select e.at
    from unnest(places, actors, kinds) as key (place, actor, kind)
    cross join lateral (
      select one.at from change_entry one
        where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < before
          and (kind_sets[key.place] = '{}' or one.kind = any (kind_sets[key.place]::bigint[]))
        order by one.at, one.sequence offset 0
    ) as e
    where key.actor > 0
  union all
  select e.at
    from unnest(places, actors, kinds) as key (place, actor, kind)
    cross join lateral (
      select one.at from change_entry one
        where one.tenant = of_tenant and one.at >= since and one.at < before order by one.at, one.sequence offset 0
    ) as e
    where key.actor = 0 and key.kind = 0
$$;
