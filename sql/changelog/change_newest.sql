-- The entries of the selections in [since, before), newest first and of one millisecond the latest recorded first, without
-- the first `skip`, `size` at most: the newest of each key are merged. They are looked for in the last `span`
-- milliseconds before `before`, or before `now` where that is earlier, and further back where those have too few.
create function change_newest(of_tenant text, now bigint, actor_sets text[], kind_sets text[], since bigint,
                              before bigint, skip bigint, size bigint, span bigint)
returns table (at bigint, sequence bigint) language plpgsql stable as $$
declare
  first_moment bigint;
  ats bigint[];
  sequences bigint[];
begin
  if actor_sets = '{"{0}"}' and kind_sets = '{"{0}"}' then
    return query
      select e.at, e.sequence from change_entry e
        where e.tenant = of_tenant and e.at >= since and e.at < before
        order by e.at desc, e.sequence desc offset skip limit size;
    return;
  end if;
  loop
    first_moment := greatest(since, least(before, now) - span);
    select array_agg(newest.at), array_agg(newest.sequence) into ats, sequences
      from (
        select e.at, e.sequence
          from (select unnest(s.kinds) as kind from change_selections(actor_sets, kind_sets) s where s.actors = '{0}') as key
          cross join lateral (
            select one.at, one.sequence from change_entry one
              where one.tenant = of_tenant and one.kind = key.kind and one.at >= first_moment and one.at < before
              order by one.at desc, one.sequence desc limit skip + size
          ) as e
        union all
        select e.at, e.sequence
          from (select unnest(s.actors) as actor from change_selections(actor_sets, kind_sets) s
                  where s.actors <> '{0}' and s.kinds = '{}') as key
          cross join lateral (
            select one.at, one.sequence from change_entry one
              where one.tenant = of_tenant and one.actor = key.actor and one.at >= first_moment and one.at < before
              order by one.at desc, one.sequence desc limit skip + size
          ) as e
        union all
        select e.at, e.sequence
          from (select unnest(s.actors) as actor, s.kinds from change_selections(actor_sets, kind_sets) s
                  where s.actors <> '{0}' and s.kinds <> '{}') as key
          cross join lateral (
            select one.at, one.sequence from change_entry one
              where one.tenant = of_tenant and one.actor = key.actor and one.kind = any (key.kinds)
                and one.at >= first_moment and one.at < before
              order by one.at desc, one.sequence desc limit skip + size
          ) as e
        order by 1 desc, 2 desc offset skip limit size
      ) as newest;
    exit when first_moment = since or cardinality(ats) = size;
    span := span * 16;
  end loop;
  return query select * from unnest(ats, sequences);
end
$$;
