-- The `size` entity types with most entries of some actors ({0}: of any) in [since, before), and how many each has; of those with the same number, the first in
-- the order of their names. `of_kinds` are the kinds that count, and `names` has for each of them the kind that stands for its entity type.
--
-- The tallies of the kinds, whoever the actor is, tell how many entries an entity type has at most. The `size` types that may have most are
-- counted, and then only those that may have as many as the last one of these. Each count reads all tallies of a level at once.
create function change_top_entities(of_tenant text, of_actors bigint[], of_kinds bigint[], names bigint[], since bigint, before bigint,
                                    size integer)
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
  -- the entity types by their upper bounds, the highest first
  candidates bigint[];
  uppers bigint[];
  lowest bigint := 0;
  -- what is counted in a round
  some_kinds bigint[];
  open_keys bigint[];
  open_cells bigint[];
  sparse_keys bigint[];
  sparse_lengths bigint[];
  sparse_cells bigint[];
  few_keys bigint[];
  few_cells bigint[];
  some_counted bigint[];
  some_entries bigint[];
  -- each kind as often as something of it was counted, and how much
  counted_kinds bigint[] := '{}';
  counted_entries bigint[] := '{}';
  -- of the round before
  first_names bigint[];
  first_entries bigint[];
begin
  select array_agg(bound.name order by bound.entries desc), array_agg(bound.entries order by bound.entries desc) into candidates, uppers
    from (
      select named.name, sum(named.entries)::bigint as entries
        -- not joined, since nobody knows whether the planner would hash a join of arrays
        from (
          select known.kind, max(known.name) as name, sum(known.entries) as entries
            from (
              select n.kind, n.name, 0::bigint as entries from unnest(of_kinds, names) as n (kind, name)
              union all
              -- of the coarsest cells the children that are in the range in part or as a whole
              select t.kind, null, coalesce(t.upto[width_bucket(least((last_moment - 1 - t.start) / 2764800000, 31)::smallint, t.children)], 0)
                       - coalesce(t.upto[width_bucket((greatest(since - t.start, 0) / 2764800000 - 1)::smallint, t.children)], 0)
                from change_coarse_cells(of_tenant, since, before) as coarse (bucket)
                cross join lateral (
                  select one.kind, one.children, one.upto, one.bucket * 88473600000 as start from change_tally one
                    where one.tenant = of_tenant and one.level = 0 and one.bucket = coarse.bucket and one.actor = 0 and one.kind > 0
                    offset 0
                ) as t
              union all
              -- without the days before the range
              select t.kind, null, -coalesce(t.upto[width_bucket(((since / 86400000) % 32 - 1)::smallint, t.children)], 0)
                from change_tally t
                where t.tenant = of_tenant and t.level = 1 and t.bucket = since / 2764800000 and t.actor = 0 and t.kind > 0
              union all
              -- and after it
              select t.kind, null, coalesce(t.upto[width_bucket((((last_moment - 1) / 86400000) % 32)::smallint, t.children)], 0)
                       - t.upto[cardinality(t.upto)]
                from change_tally t
                where t.tenant = of_tenant and t.level = 1 and t.bucket = (last_moment - 1) / 2764800000 and t.actor = 0 and t.kind > 0
              union all
              select p.kind, null, 1
                from change_delta d
                cross join lateral unnest(d.ats, d.kinds) as p (at, kind)
                where any_pending and d.tenant = of_tenant and p.at >= since and p.at < last_moment
            ) as known
            group by 1
        ) as named
        where named.name is not null
        group by 1
        having sum(named.entries) > 0
    ) as bound;

  for round in 1..2 loop
    select array_agg(n.kind) into some_kinds
      from unnest(of_kinds, names) as n (kind, name)
      -- hashed, as in change_pending
      where case when n.name in (
        select c.name from unnest(candidates, uppers) with ordinality as c (name, entries, place)
          where case round when 1 then c.place <= size else c.place > size and c.entries >= lowest end
      ) then true end;
    -- without a tenant only for the plans, see change_counts
    exit when some_kinds is null and of_tenant <> '';
    if of_actors = '{0}' then
      select array_agg(c.key), array_agg(c.entries) into some_counted, some_entries
        from change_counts(of_tenant, of_actors, some_kinds, array[since], before, 'kind') as c;
    else
      sparse_keys := '{}';
      sparse_lengths := '{}';
      sparse_cells := '{}';
      select array_agg(of.actor), array_agg(coarse.bucket) into open_keys, open_cells
        from change_coarse_cells(of_tenant, since, before) as coarse (bucket) cross join unnest(of_actors) as of (actor);

      for depth in 0..4 loop
        exit when open_keys is null and of_tenant <> '';
        cell := change_cell(depth);
        part := change_cell(depth + 1);
        with inside as materialized (
          -- as in change_top_actors: the children that are in the range as a whole, from the first one to the last one, and those that its ends cut
          select c.bucket, (greatest(since - c.start, 0) + part - 1) / part as first,
                 least((last_moment - c.start) / part, cell / part) - 1 as last,
                 case when since > c.start and (since - c.start) % part <> 0 then (since - c.start) / part end as cut_first,
                 case when last_moment < c.start + cell and (last_moment - c.start) % part <> 0 then (last_moment - c.start) / part end
                   as cut_last
            from (select distinct b as bucket, b * cell as start from unnest(open_cells) as b) as c
        ), pair as materialized (
          select open.key, inside.* from unnest(open_keys, open_cells) as open (key, bucket) join inside on inside.bucket = open.bucket
        ), whole as (
          select t.kind, sum(t.entries)::bigint as entries
            from pair
            cross join lateral (
              select one.kind, coalesce(one.upto[width_bucket(pair.last::smallint, one.children)], 0)
                       - coalesce(one.upto[width_bucket((pair.first - 1)::smallint, one.children)], 0) as entries
                from change_tally one
                where pair.first <= pair.last and one.tenant = of_tenant and one.level = depth and one.bucket = pair.bucket
                  and one.actor = pair.key and one.kind = any (some_kinds)
                offset 0
            ) as t
            group by 1
        ), cut as (
          -- as many entries as the actor has tell whether its kinds have tallies of a part
          select t.key, t.bucket * (cell / part) + t.child as bucket, depth < 4 and t.entries >= 64 as is_dense
            from (
              select pair.key, pair.bucket, c.child, coalesce(one.upto[width_bucket(c.child::smallint, one.children)], 0)
                       - coalesce(one.upto[width_bucket((c.child - 1)::smallint, one.children)], 0) as entries
                from pair
                cross join lateral (values (pair.cut_first), (nullif(pair.cut_last, pair.cut_first))) as c (child)
                cross join lateral (
                  select t.children, t.upto from change_tally t
                    where c.child is not null and t.tenant = of_tenant and t.level = depth and t.bucket = pair.bucket and t.actor = pair.key
                      and t.kind = 0
                    offset 0
                ) as one
            ) as t
            where t.entries > 0
        )
        select counts.kinds, counts.entries, cuts.open_keys, cuts.open_cells, cuts.few_keys, cuts.few_cells
          into some_counted, some_entries, open_keys, open_cells, few_keys, few_cells
          from (select array_agg(whole.kind) as kinds, array_agg(whole.entries) as entries from whole) as counts
          cross join (
            select array_agg(cut.key) filter (where cut.is_dense) as open_keys, array_agg(cut.bucket) filter (where cut.is_dense) as open_cells,
                   array_agg(cut.key) filter (where not cut.is_dense) as few_keys,
                   array_agg(cut.bucket) filter (where not cut.is_dense) as few_cells
              from cut
          ) as cuts;
        counted_kinds := counted_kinds || some_counted;
        counted_entries := counted_entries || some_entries;
        if few_keys is not null then
          sparse_keys := sparse_keys || few_keys;
          sparse_cells := sparse_cells || few_cells;
          sparse_lengths := sparse_lengths || array_fill(part, array[cardinality(few_keys)]);
        end if;
      end loop;

      with waiting as materialized (
        select p.at, p.kind, p.actor
          from change_delta d
          cross join lateral unnest(d.ats, d.kinds, d.actors) as p (at, kind, actor)
          where any_pending and d.tenant = of_tenant and p.at >= since and p.at < last_moment
            and case when p.actor in (select unnest(of_actors)) and p.kind in (select unnest(some_kinds)) then true end
      )
      select array_agg(found.kind), array_agg(found.entries) into some_counted, some_entries
        from (
          -- each is a range of an index, fenced and in its order: see change_direct
          select e.kind, count(*) as entries
            from unnest(sparse_keys, sparse_lengths, sparse_cells) as sparse (key, length, bucket)
            cross join lateral (
              select one.kind from change_entry one
                where one.tenant = of_tenant and one.actor = sparse.key and one.at >= greatest(sparse.bucket * sparse.length, since)
                  and one.at < least((sparse.bucket + 1) * sparse.length, last_moment)
                order by one.at, one.sequence offset 0
            ) as e
            where case when e.kind in (select unnest(some_kinds)) then true end
            group by 1
          union all
          select waiting.kind, count(*) from waiting group by 1
          union all
          -- those were counted with the entries
          select waiting.kind, -count(*)
            from waiting cross join (values (88473600000::bigint), (2764800000), (86400000), (3600000), (60000), (1000)) as of (length)
            where case when (waiting.actor, of.length, waiting.at / of.length)
              in (select * from unnest(sparse_keys, sparse_lengths, sparse_cells)) then true end
            group by 1
        ) as found;
    end if;
    counted_kinds := counted_kinds || some_counted;
    counted_entries := counted_entries || some_entries;

    select array_agg(c.name), array_agg(c.entries) into first_names, first_entries
      from (
        select named.name, sum(named.entries)::bigint as entries
          from (
            select counted.kind, max(counted.name) as name, sum(counted.entries) as entries
              from (
                select n.kind, n.name, 0::bigint as entries from unnest(of_kinds, names) as n (kind, name)
                union all
                select k.kind, null, k.entries from unnest(counted_kinds, counted_entries) as k (kind, entries)
              ) as counted
              group by 1
          ) as named
          group by 1
          having sum(named.entries) > 0
      ) as c;
    lowest := coalesce((select f.entries from unnest(first_entries) as f (entries) order by f.entries desc offset size - 1 limit 1), 0);
  end loop;

  return query
    select kind.entity, exact.entries
      from unnest(first_names, first_entries) as exact (name, entries)
      cross join lateral (
        select k.entity from change_kind k where k.tenant = of_tenant and k.kind = exact.name offset 0
      ) as kind
      order by exact.entries desc, kind.entity limit size;
end
$$;
