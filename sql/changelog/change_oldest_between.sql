-- The entries of the selections in [since, before), oldest first, without the first `skip`, `size` at most. Of one millisecond
-- the latest recorded is the newest. What is read of several keys is merged, so `since` and `before` are to be near one
-- another where there are many. change_newest_between differs in nothing but the order.
create function change_oldest_between(of_tenant text, actor_sets text[], kind_sets text[], since bigint, before bigint,
                                      skip bigint, size bigint)
returns setof change_entry language plpgsql stable as $$
begin
  if actor_sets = '{"{0}"}' and kind_sets = '{"{0}"}' then
    return query
      select one.* from change_entry one
        where one.tenant = of_tenant and one.at >= since and one.at < before
        order by one.at asc, one.sequence asc offset skip limit size;
  elsif cardinality(actor_sets) = 1 and cardinality(actor_sets[1]::bigint[]) > 256 then
    -- so many are likely to have some of any entries
    return query
      with wanted as materialized (
        select unnest(actor_sets[1]::bigint[]) as actor
      ), along as materialized (
        select e.* from change_entry e
          where e.tenant = of_tenant and e.at >= since and e.at < before
          order by e.at asc, e.sequence asc limit 1024
      ), matching as materialized (
        select one.* from along one
          -- looked up in a hash: not a join, which the planner might loop over
          where case when one.actor in (select wanted.actor from wanted) then true end
            and (kind_sets[1] = '{}' or one.kind = any (kind_sets[1]::bigint[]))
      ), answered as materialized (
        select (select count(*) from matching) >= skip + size or (select count(*) from along) < 1024 as so
      )
      select found.* from (
        select * from matching where (select so from answered)
        union all
        select e.* from wanted
          cross join lateral (
            select one.* from change_entry one
              where one.tenant = of_tenant and one.actor = wanted.actor and one.at >= since and one.at < before
                and (kind_sets[1] = '{}' or one.kind = any (kind_sets[1]::bigint[]))
              order by one.at asc, one.sequence asc limit skip + size
          ) as e
          where not (select so from answered)
      ) as found
      order by found.at asc, found.sequence asc offset skip limit size;
  elsif kind_sets = '{"{}"}' then
    return query
      select e.* from unnest(actor_sets[1]::bigint[]) as key (actor)
        cross join lateral (
          select one.* from change_entry one
            where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < before
            order by one.at asc, one.sequence asc limit skip + size
        ) as e
        order by e.at asc, e.sequence asc offset skip limit size;
  elsif actor_sets = '{"{0}"}' then
    return query
      select e.* from unnest(kind_sets[1]::bigint[]) as key (kind)
        cross join lateral (
          select one.* from change_entry one
            where one.tenant = of_tenant and one.kind = key.kind and one.at >= since and one.at < before
            order by one.at asc, one.sequence asc limit skip + size
        ) as e
        order by e.at asc, e.sequence asc offset skip limit size;
  else
    return query
      select found.* from (
        select e.* from (select unnest(s.kinds) as kind from change_selections(actor_sets, kind_sets) s where s.actors = '{0}') as key
          cross join lateral (
            select one.* from change_entry one
              where one.tenant = of_tenant and one.kind = key.kind and one.at >= since and one.at < before
              order by one.at asc, one.sequence asc limit skip + size
          ) as e
        union all
        select e.* from (select unnest(s.actors) as actor, s.kinds from change_selections(actor_sets, kind_sets) s
                           where s.actors <> '{0}') as key
          cross join lateral (
            select one.* from change_entry one
              where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < before
                and (key.kinds = '{}' or one.kind = any (key.kinds))
              order by one.at asc, one.sequence asc limit skip + size
          ) as e
      ) as found
      order by found.at asc, found.sequence asc offset skip limit size;
  end if;
end
$$;
