-- The time of the oldest entry of a selection (see change_count) in [since, before), without an end if `before` is
-- null; null: there is none. Each key is a range of an index. An actor may have none of these kinds among its oldest
-- `max_tried` entries, and finding one would take long: then `decided` is false, unless another actor has an older
-- one.
create function change_oldest(of_tenant text, actors bigint[], kinds bigint[], since bigint, before bigint)
returns table (oldest bigint, decided boolean)
language plpgsql stable
-- see change_read
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
set enable_sort = off set enable_incremental_sort = off as $$
declare
  max_tried constant integer := 1000;
  last_moment constant bigint := coalesce(before, 9223372036854775807);
begin
  if actors <> '{0}' and kinds not in ('{}', '{0}') then
    return query
      select min(first.at), min(reached.at) is null or coalesce(min(first.at) <= min(reached.at), false)
        from unnest(actors) as key (actor)
        left join lateral (
          select e.at from (
            select one.at, one.kind from change_entry one
              where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < last_moment
              order by one.at, one.sequence limit max_tried
          ) as e
          -- not a join, which would read all of them
          where case when e.kind in (select unnest(kinds)) then true end
          order by e.at limit 1
        ) as first on true
        left join lateral (
          select one.at from change_entry one
            where first.at is null and one.tenant = of_tenant and one.actor = key.actor and one.at >= since
              and one.at < last_moment
            order by one.at, one.sequence offset max_tried - 1 limit 1
        ) as reached on true;
  elsif actors <> '{0}' then
    return query
      select min(e.at), true from unnest(actors) as key (actor)
        cross join lateral (
          select one.at from change_entry one
            where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < last_moment
            order by one.at, one.sequence limit 1
        ) as e;
  elsif kinds <> '{0}' then
    return query
      select min(e.at), true from unnest(kinds) as key (kind)
        cross join lateral (
          select one.at from change_entry one
            where one.tenant = of_tenant and one.kind = key.kind and one.at >= since and one.at < last_moment
            order by one.at, one.sequence limit 1
        ) as e;
  else
    return query
      select min(e.at), true from (
        select one.at from change_entry one
          where one.tenant = of_tenant and one.at >= since and one.at < last_moment
          order by one.at, one.sequence limit 1
      ) as e;
  end if;
end
$$;
