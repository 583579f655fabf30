-- How many entries of one selection (see change_rank) are in each of some ranges of time: range i is [moments[i], moments[i + 1]), the
-- last one ends at `before` (null: never). They are told apart by `split`: by 'kind' (`of_kinds` then names them), by 'actor', by 'type', or
-- not at all (key 0). With 'type' the selection has any actor, and `of_kinds` are the numbers of types (change_type_number). That is right
-- only where the tenant has no backlog (change_type_backlog). With 'kind' and actors `of_kinds` may have the numbers of types beside all kinds of
-- these types: where an actor has tallies by type (change_fold_actor_types), they count and have the keys of types.
-- A range may come in several rows, which are to be added up, or in none.
--
-- A child of a cell that is within one range counts there as a whole. One that a moment cuts is looked into: its key has tallies
-- of its parts if it is dense, else its entries are read. So a cell is read once, however many moments are in it.
create function change_counts(of_tenant text, of_actors bigint[], of_kinds bigint[], moments bigint[], before bigint, split text)
returns table (key bigint, range integer, entries bigint)
language plpgsql stable
-- see change_read; what is looked up in a list is hashed, however short the list seems to be
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
-- a range is read from the index in whose order it is: from another one, which must be searched once for each kind, it would have to be sorted
set enable_sort = off as $$
#variable_conflict use_column
declare
  any_pending constant boolean := exists (select from change_delta d where d.tenant = of_tenant);
  -- no tenant is called '': each statement is carried out though there is nothing to count, so that the connection has its plan
  only_plans constant boolean := of_tenant = '';
  by_actors constant boolean := of_actors <> '{0}' or split = 'actor';
  by_types constant boolean := split = 'type';
  of_any_kind constant boolean := of_kinds in ('{}', '{0}');
  -- the kinds whose tallies are added up, after the 0 that tells how dense an actor is, or the tenant where they are types
  has_guide constant boolean := by_actors or by_types;
  tallied constant bigint[] := case when of_any_kind then '{0}' when has_guide then 0::bigint || of_kinds else of_kinds end;
  lowest bigint;
  highest bigint;
  first_moment constant bigint := moments[1];
  last_moment constant bigint := coalesce(before, 9223372036854775807);
  last_range constant integer := cardinality(moments);
  -- so many tallies may be added up in a cell of an actor, by kind or by type
  all_kinds bigint;
  all_types bigint;
  typed_actors boolean;
  types constant bigint[] := array(select k from unnest(tallied) as k where k <= 0);
  cuts constant bigint[] := case when before is null then moments else moments || before end;
  cell bigint;
  part bigint;
  -- the keys that have tallies in cells that are to be looked into
  dense_keys bigint[];
  dense_cells bigint[];
  -- the cells of keys that are counted from the entries, each by its length and its number
  sparse_keys bigint[] := '{}';
  sparse_lengths bigint[] := '{}';
  sparse_cells bigint[] := '{}';
  found_keys bigint[];
  found_ranges integer[];
  found_entries bigint[];
  few_keys bigint[];
  few_cells bigint[];
  -- the kinds of two types, if actors are counted by type: all others are of the third
  create_kinds bigint[];
  update_kinds bigint[];
begin
  select min(k), max(k), count(*) filter (where k > 0), count(*) filter (where k < 0)
    into lowest, highest, all_kinds, all_types from unnest(tallied) as k;
  typed_actors := by_actors and all_types > 0;
  if by_actors and not of_any_kind then
    -- to read the few entries of an actor costs less than its tallies by kind: some hundred for each of them
    select array_agg(t.actor) filter (where cost.few), array_agg(t.bucket) filter (where cost.few),
           array_agg(t.actor) filter (where not cost.few), array_agg(t.bucket) filter (where not cost.few)
      into few_keys, few_cells, dense_keys, dense_cells
      from change_coarse_cells(of_tenant, first_moment, before) as coarse (bucket)
      cross join unnest(case when of_actors = '{0}' then array(select a.actor from change_actor a where a.tenant = of_tenant) else of_actors end)
        as of (actor)
      cross join lateral (
        -- those from the child on that holds the first moment
        select one.actor, one.bucket,
               one.upto[cardinality(one.upto)]
                 - coalesce(one.upto[width_bucket((greatest(first_moment - one.bucket * 88473600000, 0) / 2764800000 - 1)::smallint, one.children)], 0)
                 as entries
          from change_tally one
          where one.tenant = of_tenant and one.level = 0 and one.bucket = coarse.bucket and one.actor = of.actor and one.kind = 0
          offset 0
      ) as t
      cross join lateral (
        select case
            when typed_actors and exists (
              select from change_tally typed where typed.tenant = of_tenant and typed.level = 0 and typed.bucket = t.bucket
                 and typed.actor = t.actor and typed.kind between -3 and -1)
              then all_types
            when t.entries >= 100 * (1 + all_kinds) then all_kinds
            -- as many as there are, but not more than are too many
            else (select count(*) from (
              select from change_tally own where own.tenant = of_tenant and own.level = 0 and own.bucket = t.bucket
                 and own.actor = t.actor and own.kind > 0
                limit t.entries / 100) as own)
          end as tallies
          offset 0
      ) as known
      cross join lateral (select t.entries < 100 * (1 + known.tallies) as few) as cost;
    sparse_keys := coalesce(few_keys, '{}');
    sparse_cells := coalesce(few_cells, '{}');
    sparse_lengths := array_fill(change_cell(0), array[cardinality(sparse_keys)]);
  else
    select array_agg(of.key), array_agg(coarse.bucket) into dense_keys, dense_cells
      from change_coarse_cells(of_tenant, first_moment, before) as coarse (bucket)
      cross join unnest(case when by_types then of_actors
                             when not by_actors then tallied
                             when of_actors = '{0}' then array(select a.actor from change_actor a where a.tenant = of_tenant)
                             else of_actors end) as of (key);
  end if;

  for depth in 0..4 loop
    exit when dense_keys is null and not only_plans;
    cell := change_cell(depth);
    part := change_cell(depth + 1);
    with looked_into as materialized (
      -- the range that each child is in, or -1 where a moment cuts it
      select c.bucket, ranges.of_child, ranges.first_child, ranges.last_child
        from (select distinct b as bucket from unnest(dense_cells) as b) as c
        cross join lateral (
          select array_agg(case when r.first = r.last then r.first else -1 end order by n) as of_child,
                 (min(n) filter (where r.last >= 1) - 1)::smallint as first_child,
                 (max(n) filter (where r.first <= last_range))::smallint as last_child
            from generate_series(0, cell / part - 1) as n
            cross join lateral (
              select width_bucket(c.bucket * cell + n * part, cuts) as first, width_bucket(c.bucket * cell + (n + 1) * part - 1, cuts) as last
            ) as r
        ) as ranges
    ), pair as materialized (
      select dense.key, looked_into.*
        from unnest(dense_keys, dense_cells) as dense (key, bucket) join looked_into on looked_into.bucket = dense.bucket
    ), first_read as materialized (
      select pair.*, t.kind, t.children, t.upto
        from pair
        cross join lateral (
          select one.kind, one.children, one.upto from change_tally one
            where one.tenant = of_tenant and one.level = depth and one.bucket = pair.bucket
              and one.actor = case when has_guide then pair.key else 0 end
              and one.kind >= case when has_guide then lowest else pair.key end
              and one.kind <= case when typed_actors then 0 when has_guide then highest else pair.key end
              and (not has_guide or one.kind = any (case when typed_actors then types else tallied end))
            offset 0
        ) as t
    ), tally as materialized (
      select * from first_read
      union all
      -- where types count, their kinds do not
      select untyped.*, t.kind, t.children, t.upto
        from (
          select pair.* from pair
            where typed_actors
              and not (pair.key, pair.bucket) in (select first_read.key, first_read.bucket from first_read where first_read.kind < 0)
            offset 0
        ) as untyped
        cross join lateral (
          select one.kind, one.children, one.upto from change_tally one
            where one.tenant = of_tenant and one.level = depth and one.bucket = untyped.bucket and one.actor = untyped.key
              and one.kind > 0 and one.kind <= highest and one.kind = any (tallied)
            offset 0
        ) as t
    ), counted as materialized (
      select of_child.key, looked_into.of_child[of_child.child + 1] as range, sum(of_child.entries)::bigint as entries
        from (
          select node.key, node.bucket, node.child, sum(node.upto - node.before) as entries
            from (
              -- from the first child that is in a range up to the last one: all at once, a subscript for each of them would take longer
              select one.key, one.bucket, unnest(one.children[one.first:one.last]) as child, unnest(one.upto[one.first:one.last]) as upto,
                     unnest((array[0::bigint] || one.upto)[one.first:one.last]) as before
                from (
                  select case when split in ('kind', 'type') then tally.kind when split = 'actor' then tally.key else 0 end as key,
                         tally.bucket, tally.children, tally.upto, width_bucket(tally.first_child, tally.children) + 1 as first,
                         width_bucket(tally.last_child, tally.children) as last
                    from tally
                    where of_any_kind or tally.kind <> 0
                    offset 0
                ) as one
            ) as node
            group by 1, 2, 3
        ) as of_child
        join looked_into on looked_into.bucket = of_child.bucket
        group by 1, 2
    ), cut as (
      select tally.key, tally.bucket * (cell / part) + place.child as bucket, depth < 4 and inside.entries >= 64 as is_dense
        from (
          select looked_into.bucket, (n - 1)::smallint as child
            from looked_into cross join lateral generate_subscripts(looked_into.of_child, 1) as n
            where looked_into.of_child[n] = -1
            offset 0
        ) as place
        join tally on tally.bucket = place.bucket and (not has_guide or tally.kind = 0)
        cross join lateral (
          select coalesce(tally.upto[width_bucket(place.child, tally.children)], 0)
                   - coalesce(tally.upto[width_bucket((place.child - 1)::smallint, tally.children)], 0) as entries
        ) as inside
        where inside.entries > 0
    )
    select counts.keys, counts.ranges, counts.entries, cuts.dense_keys, cuts.dense_cells, cuts.few_keys, cuts.few_cells
      into found_keys, found_ranges, found_entries, dense_keys, dense_cells, few_keys, few_cells
      from (
        select array_agg(counted.key) as keys, array_agg(counted.range) as ranges, array_agg(counted.entries) as entries from counted
          where counted.range between 1 and last_range
      ) as counts
      cross join (
        select array_agg(cut.key) filter (where cut.is_dense) as dense_keys, array_agg(cut.bucket) filter (where cut.is_dense) as dense_cells,
               array_agg(cut.key) filter (where not cut.is_dense) as few_keys,
               array_agg(cut.bucket) filter (where not cut.is_dense) as few_cells
          from cut
      ) as cuts;
    return query select * from unnest(found_keys, found_ranges, found_entries);
    if few_keys is not null then
      sparse_keys := sparse_keys || few_keys;
      sparse_cells := sparse_cells || few_cells;
      sparse_lengths := sparse_lengths || array_fill(part, array[cardinality(few_keys)]);
    end if;
  end loop;

  -- each key is a range of an index, fenced and in its order: see change_direct
  if cardinality(sparse_keys) = 0 and not only_plans then
    null;
  elsif by_actors then
    if typed_actors then
      select array_agg(k.kind) filter (where k.type = 'create'), array_agg(k.kind) filter (where k.type = 'update')
        into create_kinds, update_kinds from change_kind k where k.tenant = of_tenant;
    end if;
    return query
      select case
               when split = 'actor' then sparse.key
               when split <> 'kind' then 0
               when not typed_actors then e.kind
               when e.kind in (select unnest(create_kinds)) then -1
               when e.kind in (select unnest(update_kinds)) then -2
               else -3
             end,
             width_bucket(e.at, moments), count(*)
        from unnest(sparse_keys, sparse_lengths, sparse_cells) as sparse (key, length, bucket)
        cross join lateral (
          select one.at, one.kind from change_entry one
            where one.tenant = of_tenant and one.actor = sparse.key and one.at >= greatest(sparse.bucket * sparse.length, first_moment)
              and one.at < least((sparse.bucket + 1) * sparse.length, last_moment)
            order by one.at, one.sequence offset 0
        ) as e
        where case when of_any_kind then true else e.kind in (select unnest(of_kinds)) end
        group by 1, 2;
  elsif by_types then
    return query
      select typed.type, of_kind.range, of_kind.entries
        from (
          select e.kind, width_bucket(e.at, moments) as range, count(*) as entries
            from unnest(sparse_lengths, sparse_cells) as sparse (length, bucket)
            cross join lateral (
              select one.at, one.kind from change_entry one
                where one.tenant = of_tenant and one.at >= greatest(sparse.bucket * sparse.length, first_moment)
                  and one.at < least((sparse.bucket + 1) * sparse.length, last_moment)
                order by one.at, one.sequence offset 0
            ) as e
            group by 1, 2
            offset 0
        ) as of_kind
        cross join lateral (
          select change_type_number(k.type) as type from change_kind k where k.tenant = of_tenant and k.kind = of_kind.kind offset 0
        ) as typed
        where typed.type = any (of_kinds);
  elsif of_any_kind then
    return query
      select 0::bigint, width_bucket(e.at, moments), count(*)
        from unnest(sparse_lengths, sparse_cells) as sparse (length, bucket)
        cross join lateral (
          select one.at from change_entry one
            where one.tenant = of_tenant and one.at >= greatest(sparse.bucket * sparse.length, first_moment)
              and one.at < least((sparse.bucket + 1) * sparse.length, last_moment)
            order by one.at, one.sequence offset 0
        ) as e
        group by 1, 2;
  else
    return query
      select case split when 'kind' then sparse.key else 0 end, width_bucket(e.at, moments), count(*)
        from unnest(sparse_keys, sparse_lengths, sparse_cells) as sparse (key, length, bucket)
        cross join lateral (
          select one.at from change_entry one
            where one.tenant = of_tenant and one.kind = sparse.key and one.at >= greatest(sparse.bucket * sparse.length, first_moment)
              and one.at < least((sparse.bucket + 1) * sparse.length, last_moment)
            order by one.at, one.sequence offset 0
        ) as e
        group by 1, 2;
  end if;

  if any_pending then
    return query
      with pending as materialized (
        select case when by_actors then p.actor when of_any_kind or by_types then 0 else p.kind end as key, p.kind, p.at
          from change_delta d
          cross join lateral unnest(d.ats, d.kinds, d.actors) as p (at, kind, actor)
          where d.tenant = of_tenant and p.at >= first_moment and p.at < last_moment
            and (of_actors = '{0}' or p.actor in (select unnest(of_actors)))
            and (of_any_kind or by_types or p.kind in (select unnest(of_kinds)))
      ), waiting as (
        select pending.key, pending.kind, pending.at, 1 as entries from pending
        union all
        -- those were counted with the entries
        select pending.key, pending.kind, pending.at, -1
          from pending
          cross join (
            values (88473600000::bigint), (2764800000), (86400000), (3600000), (60000), (1000)
          ) as of (length)
          where (pending.key, of.length, pending.at / of.length) in (select * from unnest(sparse_keys, sparse_lengths, sparse_cells))
      )
      select coalesce(typed.type, summed.key), summed.range, summed.entries
        from (
          select case when split in ('kind', 'type') then waiting.kind when split = 'actor' then waiting.key else 0 end as key,
                 width_bucket(waiting.at, moments) as range, sum(waiting.entries)::bigint as entries
            from waiting
            group by 1, 2
            offset 0
        ) as summed
        left join lateral (
          select change_type_number(k.type) as type from change_kind k
            where by_types and k.tenant = of_tenant and k.kind = summed.key offset 0
        ) as typed on true
        where not by_types or typed.type = any (of_kinds);
  end if;
end
$$;
