-- The entries of selections (see change_total) in [since, before), newest first and, within a millisecond, the latest
-- recorded first, without the first `skip`, at most `size`. Those of several keys are merged: they are searched in the
-- last `span` milliseconds before `before`, or before `now` if that is earlier, and further back if these have too few.
create function change_newest(of_tenant text, now bigint, actor_sets text[], kind_sets text[], since bigint,
                              before bigint, skip bigint, size bigint, span bigint)
returns setof change_entry language plpgsql stable rows 50 as $$
declare
  most constant bigint := skip + size;
  one_key constant boolean := cardinality(actor_sets) = 1 and strpos(actor_sets[1] || kind_sets[1], ',') = 0;
  first_moment bigint := since;
  actors bigint[] := actor_sets[1]::bigint[];
  kinds bigint[] := kind_sets[1]::bigint[];
  ats bigint[];
  sequences bigint[];
  newest record;
begin
  if one_key and actors = '{0}' then
    if kinds = '{0}' then
      return query
        select e.* from change_entry e
          where e.tenant = of_tenant and e.at >= since and e.at < before
          order by e.at desc, e.sequence desc offset skip limit size;
    else
      return query
        select e.* from change_entry e
          where e.tenant = of_tenant and e.kind = kinds[1] and e.at >= since and e.at < before
          order by e.at desc, e.sequence desc offset skip limit size;
    end if;
    return;
  end if;
  loop
    if not one_key then
      first_moment := greatest(since, least(before, now) - span);
    end if;
    ats := '{}';
    sequences := '{}';
    for place in 1..cardinality(actor_sets) loop
      select n.ats, n.sequences into newest
        from change_places(of_tenant, actor_sets[place]::bigint[], kind_sets[place]::bigint[], first_moment, before,
                           most) n;
      ats := ats || newest.ats;
      sequences := sequences || newest.sequences;
    end loop;
    exit when first_moment = since or cardinality(ats) >= most;
    span := span * 16;
  end loop;
  return query
    select e.* from (
      select p.at, p.sequence from unnest(ats, sequences) as p (at, sequence)
        order by p.at desc, p.sequence desc offset skip limit size
    ) as page
    -- a place as a range that is read in order: a plan from when the tables were small would go through all entries
    cross join lateral (
      select one.* from change_entry one
        where one.tenant = of_tenant and (one.at, one.sequence) >= (page.at, page.sequence)
          and (one.at, one.sequence) <= (page.at, page.sequence)
        order by one.at, one.sequence limit 1
    ) as e;
end
$$;
