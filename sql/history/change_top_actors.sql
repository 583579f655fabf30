-- The names of the `size` actors with most entries in [since, before), and how many each has; of those with the same number, the first in the
-- order of the names. `of_actors` are those that come into question, {0}: all. Of an actor that was registered under
-- several numbers, `twins` has the others and `firsts` the one that stands for it.
--
-- A cell that is within the range as a whole counts. Of one that an end of the range cuts, it is known at least how many entries it has. So
-- each actor has a lower and an upper bound. Only the cut cells of actors that may still be among the first are looked into.
create function change_top_actors(of_tenant text, of_actors bigint[], since bigint, before bigint, size integer,
                                  twins bigint[], firsts bigint[])
returns table (name text, entries bigint)
language plpgsql stable
-- see change_read and change_counts
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off set enable_sort = off as $$
#variable_conflict use_column
declare
  last_moment constant bigint := coalesce(before, 9223372036854775807);
  any_pending constant boolean := exists (select from change_delta d where d.tenant = of_tenant);
  cell bigint;
  part bigint;
  -- the actors that may be among the first, each under the number that stands for it, and their lower bounds
  names bigint[];
  lowers bigint[];
  -- the dense cells that are to be looked into
  open_keys bigint[];
  open_names bigint[];
  open_cells bigint[];
  -- the cut cells without tallies: where they are, by length and number, and how many entries they have
  sparse_keys bigint[];
  sparse_names bigint[];
  sparse_lengths bigint[];
  sparse_cells bigint[];
  sparse_entries bigint[];
begin
  if any_pending then
    select array_agg(p.name), array_agg(p.entries) into names, lowers
      from (
        select coalesce(twin.first, p.actor) as name, count(*) as entries
          from change_delta d
          cross join lateral unnest(d.ats, d.actors) as p (at, actor)
          left join unnest(twins, firsts) as twin (key, first) on twin.key = p.actor
          where d.tenant = of_tenant and p.at >= since and p.at < last_moment
            and (of_actors = '{0}' or p.actor in (select unnest(of_actors)))
          group by 1
      ) as p;
  end if;
  select array_agg(of.key), array_agg(coalesce(twin.first, of.key)), array_agg(coarse.bucket) into open_keys, open_names, open_cells
    from change_coarse_cells(of_tenant, since, before) as coarse (bucket)
    cross join unnest(case when of_actors = '{0}' then array(select a.actor from change_actor a where a.tenant = of_tenant)
                           else of_actors end) as of (key)
    left join unnest(twins, firsts) as twin (key, first) on twin.key = of.key;

  for depth in 0..4 loop
    -- see change_counts
    exit when open_keys is null and of_tenant <> '';
    cell := change_cell(depth);
    part := change_cell(depth + 1);
    with inside as materialized (
      -- the children that are in the range as a whole, from the first one to the last one, and those that its ends cut
      select c.bucket, (greatest(since - c.start, 0) + part - 1) / part as first,
             least((last_moment - c.start) / part, cell / part) - 1 as last,
             case when since > c.start and (since - c.start) % part <> 0 then (since - c.start) / part end as cut_first,
             case when last_moment < c.start + cell and (last_moment - c.start) % part <> 0 then (last_moment - c.start) / part end
               as cut_last
        from (select distinct b as bucket, b * cell as start from unnest(open_cells) as b) as c
    ), node as materialized (
      select pair.key, pair.name, pair.bucket, t.children, t.upto, inside.first, inside.last, inside.cut_first,
             nullif(inside.cut_last, inside.cut_first) as cut_last
        from unnest(open_keys, open_names, open_cells) as pair (key, name, bucket)
        join inside on inside.bucket = pair.bucket
        cross join lateral (
          select one.children, one.upto from change_tally one
            where one.tenant = of_tenant and one.level = depth and one.bucket = pair.bucket and one.actor = pair.key and one.kind = 0
            offset 0
        ) as t
    ), cut as materialized (
      select node.key, node.name, node.bucket * (cell / part) + c.child as bucket, c.entries, depth < 4 and c.entries >= 64 as is_dense
        from node
        cross join lateral (
          select one.child, coalesce(node.upto[width_bucket(one.child::smallint, node.children)], 0)
                   - coalesce(node.upto[width_bucket((one.child - 1)::smallint, node.children)], 0) as entries
            from (values (node.cut_first), (node.cut_last)) as one (child)
            where one.child is not null
        ) as c
        where c.entries > 0
    ), bound as materialized (
      select known.name, sum(known.lower)::bigint as lower, sum(known.lower + known.open)::bigint as upper
        from (
          select n.name, n.lower, 0 as open from unnest(names, lowers) as n (name, lower)
          union all
          select node.name, coalesce(node.upto[width_bucket(node.last::smallint, node.children)], 0)
                   - coalesce(node.upto[width_bucket((node.first - 1)::smallint, node.children)], 0), 0
            from node
            where node.first <= node.last
          union all
          select cut.name, 0, cut.entries from cut
          union all
          select s.name, 0, s.entries from unnest(sparse_names, sparse_entries) as s (name, entries)
        ) as known
        group by 1
    ), kept as materialized (
      select bound.name, bound.lower
        from bound
        where bound.upper >= coalesce((select b.lower from bound b order by b.lower desc offset size - 1 limit 1), 0)
    ), sparse as (
      select s.* from unnest(sparse_keys, sparse_names, sparse_lengths, sparse_cells, sparse_entries) as s (key, name, length, bucket, entries)
      union all
      select cut.key, cut.name, part, cut.bucket, cut.entries from cut where not cut.is_dense
    )
    select known.names, known.lowers, dense.keys, dense.names, dense.cells,
           few.keys, few.names, few.lengths, few.cells, few.entries
      into names, lowers, open_keys, open_names, open_cells, sparse_keys, sparse_names, sparse_lengths, sparse_cells, sparse_entries
      from (select array_agg(kept.name) as names, array_agg(kept.lower) as lowers from kept) as known
      cross join (
        select array_agg(cut.key) as keys, array_agg(cut.name) as names, array_agg(cut.bucket) as cells
          from cut where cut.is_dense and cut.name in (select kept.name from kept)
      ) as dense
      cross join (
        select array_agg(s.key) as keys, array_agg(s.name) as names, array_agg(s.length) as lengths, array_agg(s.bucket) as cells,
               array_agg(s.entries) as entries
          from sparse s where s.name in (select kept.name from kept)
      ) as few;
  end loop;

  return query
    select actor.name, exact.entries
      from (
        select counted.name, sum(counted.entries)::bigint as entries
          from (
            select n.name, n.lower as entries from unnest(names, lowers) as n (name, lower)
            union all
            -- each is a range of an index, fenced and in its order: see change_direct
            select s.name, count(*)
              from unnest(sparse_keys, sparse_names, sparse_lengths, sparse_cells) as s (key, name, length, bucket)
              cross join lateral (
                select from change_entry one
                  where one.tenant = of_tenant and one.actor = s.key and one.at >= greatest(s.bucket * s.length, since)
                    and one.at < least((s.bucket + 1) * s.length, last_moment)
                  order by one.at, one.sequence offset 0
              ) as e
              group by 1
            union all
            -- those were counted with the entries
            select s.name, -count(*)
              from change_delta d
              cross join lateral unnest(d.ats, d.actors) as p (at, actor)
              join unnest(sparse_keys, sparse_names, sparse_lengths, sparse_cells) as s (key, name, length, bucket)
                on s.key = p.actor and p.at / s.length = s.bucket
              where any_pending and d.tenant = of_tenant and p.at >= since and p.at < last_moment
              group by 1
          ) as counted
          group by 1
          having sum(counted.entries) > 0
          offset 0
      ) as exact
      cross join lateral (
        select a.name from change_actor a where a.tenant = of_tenant and a.actor = exact.name offset 0
      ) as actor
      order by exact.entries desc, actor.name limit size;
end
$$;
