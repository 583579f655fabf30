-- Moves deltas that the transaction sees into the tallies, the oldest first, and answers how many entries they had;
-- null where another fold of the tenant is at work. It takes some `most` entries and may leave others. To be called
-- alone in a transaction that is repeatable read: the entries it sees, without those of the deltas that it leaves, are
-- then just those that the tallies hold afterwards, so that a cell which has become dense can be built from them.
create function change_fold(of_tenant text, most bigint default 500000) returns bigint
-- planned each time, with the numbers of rows there are; a cell is read from the index in whose order it is
language plpgsql set plan_cache_mode = force_custom_plan set enable_mergejoin = off set enable_sort = off set jit = off as $$
declare
  folded bigint := 0;
  last_delta bigint;
  any_left boolean;
  taking record;
  ats bigint[];
  kinds bigint[];
  actors bigint[];
  -- the portion's kinds, and the numbers of their types
  typed_kinds bigint[];
  types bigint[];
  -- the first cell that is not counted by type yet, see change_type_backlog; null: all are
  backlog_level integer;
  backlog_bucket bigint;
  -- the cells of a level that are to have rows: of the tenant, of a kind or of an actor (0: not told apart), and whether
  -- it is known what they hold already, in a row or because they are new, so that only what is new has to be added
  dense_kinds bigint[] := '{}';
  dense_actors bigint[] := '{}';
  dense_buckets bigint[] := '{}';
  dense_known boolean[] := '{}';
  -- the actors and buckets of those of the level that is being written
  written_actors bigint[];
  written_buckets bigint[];
  -- at the coarsest level each actor has one
  coarsest_actors bigint[];
  coarsest_buckets bigint[];
  -- the entries that the fold adds to tallies of actors, by type and child
  new_types bigint[];
  new_actors bigint[];
  new_children bigint[];
  new_entries bigint[];
  -- without them no cell of an actor has tallies by type
  many_kinds boolean;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('change_fold ' || of_tenant, 0)) then
    return null;
  end if;
  for taking in select d.delta, cardinality(d.ats) as entries from change_delta d where d.tenant = of_tenant order by d.delta loop
    last_delta := taking.delta;
    folded := folded + taking.entries;
    exit when folded >= most;
  end loop;
  if last_delta is null then
    return 0;
  end if;
  -- What was recorded on a day, and when by which way, stays known when retention drops the entries.
  insert into usage_count as so_far (tenant, day, measure, amount)
    select of_tenant, d.day, part.measure, sum(part.amount)
      from change_delta d
      cross join lateral (values ('entries', cardinality(d.ats)::bigint), ('bytes', d.bytes)) as part (measure, amount)
      where d.tenant = of_tenant and d.delta <= last_delta and d.day is not null
      group by d.day, part.measure
    on conflict (tenant, day, measure) do update set amount = so_far.amount + excluded.amount;
  insert into change_way as known (tenant, recorder, recorded)
    select of_tenant, d.recorder, max(d.recorded)
      from change_delta d
      where d.tenant = of_tenant and d.delta <= last_delta and d.recorder is not null
      group by d.recorder
    on conflict (tenant, recorder) do update set recorded = greatest(known.recorded, excluded.recorded);
  with taken as (
    delete from change_delta d where d.tenant = of_tenant and d.delta <= last_delta returning d.ats, d.kinds, d.actors
  )
  select array_agg(pending.at), array_agg(pending.kind), array_agg(pending.actor)
    into ats, kinds, actors
    from taken cross join lateral unnest(taken.ats, taken.kinds, taken.actors) as pending (at, kind, actor);
  any_left := exists (select from change_delta d where d.tenant = of_tenant and d.delta > last_delta);
  select array_agg(k.kind), array_agg(change_type_number(k.type)) into typed_kinds, types
    from change_kind k where k.tenant = of_tenant and k.kind in (select distinct unnest(kinds));
  select b.level, b.bucket into backlog_level, backlog_bucket from change_type_backlog b where b.tenant = of_tenant;
  select count(*) >= change_many_kinds() into many_kinds
    from (select from change_kind k where k.tenant = of_tenant limit change_many_kinds()) as k;

  for depth in 0..4 loop
    if many_kinds then
      select array_agg(d.actor), array_agg(d.bucket) into written_actors, written_buckets
        from unnest(dense_actors, dense_buckets) as d (actor, bucket) where d.actor > 0;
    end if;
    with entry as materialized (
      -- as many as there are to be told apart: children are numbered from 1970 on
      select w.kind, w.actor, w.at / change_cell(depth + 1) as child, count(*) as entries
        from unnest(ats, kinds, actors) as w (at, kind, actor)
        group by 1, 2, 3
    ), by_kind as materialized (
      select entry.kind, entry.child, sum(entry.entries) as entries from entry group by 1, 2
    ), dense as materialized (
      select d.kind, d.actor, d.bucket, d.known from unnest(dense_kinds, dense_actors, dense_buckets, dense_known)
        as d (kind, actor, bucket, known)
    ), built as materialized (
      -- fenced: each cell is a range of an index, whatever the planner makes of the number of cells
      select dense.kind as of_kind, dense.actor as of_actor, e.kind, e.actor, e.at / change_cell(depth + 1) as child, 1 as entries
        from dense
        cross join lateral (
          select one.at, one.kind, one.actor from change_entry one
            where one.tenant = of_tenant and one.at >= dense.bucket * change_cell(depth)
              and one.at < (dense.bucket + 1) * change_cell(depth)
            order by one.at, one.sequence offset 0
        ) as e
        where not dense.known and dense.kind = 0 and dense.actor = 0
      union all
      select dense.kind, dense.actor, e.kind, e.actor, e.at / change_cell(depth + 1), 1
        from dense
        cross join lateral (
          select one.at, one.kind, one.actor from change_entry one
            where one.tenant = of_tenant and one.kind = dense.kind and one.at >= dense.bucket * change_cell(depth)
              and one.at < (dense.bucket + 1) * change_cell(depth)
            order by one.at, one.sequence offset 0
        ) as e
        where not dense.known and dense.kind > 0
      union all
      select dense.kind, dense.actor, e.kind, e.actor, e.at / change_cell(depth + 1), 1
        from dense
        cross join lateral (
          select one.at, one.kind, one.actor from change_entry one
            where one.tenant = of_tenant and one.actor = dense.actor and one.at >= dense.bucket * change_cell(depth)
              and one.at < (dense.bucket + 1) * change_cell(depth)
            order by one.at, one.sequence offset 0
        ) as e
        where not dense.known and dense.actor > 0
      union all
      select dense.kind, dense.actor, unfolded.kind, unfolded.actor, unfolded.child, -1
        from (
          -- fenced: what is left may be millions of entries, and each is looked up under its three keys
          select pending.kind, pending.actor, pending.at / change_cell(depth + 1) as child,
                 pending.at / change_cell(depth) as bucket, key.kind as key_kind, key.actor as key_actor
            from change_delta d
            cross join lateral unnest(d.ats, d.kinds, d.actors) as pending (at, kind, actor)
            cross join lateral (values (0::bigint, 0::bigint), (pending.kind, 0), (0, pending.actor)) as key (kind, actor)
            where any_left and (select not bool_and(one.known) from dense one)
              and d.tenant = of_tenant and d.delta > last_delta
            offset 0
        ) as unfolded
        join dense on not dense.known and dense.kind = unfolded.key_kind and dense.actor = unfolded.key_actor
         and dense.bucket = unfolded.bucket
    ), added as materialized (
      -- the tenant, and its types in the same cells
      select coalesce(typed.type, 0) as kind, 0::bigint as actor, by_kind.child, sum(by_kind.entries) as entries, false as built
        from by_kind
        join unnest(typed_kinds, types) as typed (kind, type) on typed.kind = by_kind.kind
        where depth = 0 or exists (
          select from dense where dense.known and dense.kind = 0 and dense.actor = 0
             and dense.bucket = by_kind.child / (change_cell(depth) / change_cell(depth + 1)))
        group by grouping sets ((by_kind.child), (by_kind.child, typed.type))
        having typed.type is null or backlog_level is null
            or (-depth, by_kind.child / (change_cell(depth) / change_cell(depth + 1))) < (-backlog_level, backlog_bucket)
      union all
      select by_kind.kind, 0, by_kind.child, by_kind.entries, false
        from by_kind
        where depth = 0 or (by_kind.kind, by_kind.child / (change_cell(depth) / change_cell(depth + 1))) in (
          select dense.kind, dense.bucket from dense where dense.known and dense.kind > 0)
      union all
      select key.kind, entry.actor, entry.child, sum(entry.entries), false
        from entry
        cross join lateral (values (0::bigint), (entry.kind)) as key (kind)
        where depth = 0 or (entry.actor, entry.child / (change_cell(depth) / change_cell(depth + 1))) in (
          select dense.actor, dense.bucket from dense where dense.known and dense.actor > 0)
        group by key.kind, entry.actor, entry.child
      union all
      select key.kind, alike.of_actor, alike.child, sum(alike.entries), true
        from (
          select built.of_kind, built.of_actor, built.kind, built.child, sum(built.entries) as entries from built group by 1, 2, 3, 4
        ) as alike
        left join change_kind k on k.tenant = of_tenant and k.kind = alike.kind and alike.of_kind = 0 and alike.of_actor = 0
        cross join lateral (
          select alike.of_kind as kind
          union all
          select alike.kind where alike.of_actor > 0
          union all
          select change_type_number(k.type)
            where k.type is not null and (backlog_level is null
              or (-depth, alike.child / (change_cell(depth) / change_cell(depth + 1))) < (-backlog_level, backlog_bucket))
        ) as key
        group by key.kind, alike.of_actor, alike.child
    ), merged as materialized (
      select part.kind, part.actor, part.bucket, part.child, sum(part.entries)::bigint as entries, bool_or(part.new) as touched,
             -- before this there was none, so that what is new is all that there is
             not bool_or(part.built) and not bool_or(not part.new) as fresh
        from (
          select added.kind, added.actor, added.child / (change_cell(depth) / change_cell(depth + 1)) as bucket,
                 added.child % (change_cell(depth) / change_cell(depth + 1)) as child, added.entries, added.built, true as new
            from added
          union all
          select t.kind, t.actor, t.bucket, node.child, node.upto - coalesce(t.upto[node.i - 1], 0), false, false
            from (
              select distinct added.kind, added.actor, added.child / (change_cell(depth) / change_cell(depth + 1)) as bucket from added
            ) as key
            cross join lateral (
              select tally.kind, tally.actor, tally.bucket, tally.children, tally.upto from change_tally tally
                where tally.tenant = of_tenant and tally.level = depth and tally.bucket = key.bucket
                  and tally.actor = key.actor and tally.kind = key.kind offset 0
            ) as t
            cross join lateral unnest(t.children, t.upto) with ordinality as node (child, upto, i)
        ) as part
        group by 1, 2, 3, 4
        having sum(part.entries) > 0
    ), written as (
      insert into change_tally as t (tenant, level, actor, kind, bucket, children, upto)
        select of_tenant, depth, running.actor, running.kind, running.bucket,
               array_agg(running.child::smallint order by running.child), array_agg(running.upto order by running.child)
          from (
            select merged.*, sum(entries) over (partition by kind, actor, bucket order by child)::bigint as upto from merged
          ) as running
          group by running.kind, running.actor, running.bucket
        on conflict (tenant, level, bucket, actor, kind)
          do update set children = excluded.children, upto = excluded.upto
    ), next as (
      select merged.kind, merged.actor, merged.bucket * (change_cell(depth) / change_cell(depth + 1)) + merged.child as bucket,
             merged.fresh
        from merged
        where depth < 4 and merged.touched and merged.entries >= change_dense()
          and merged.kind >= 0 and (merged.kind = 0 or merged.actor = 0)
    )
    select finer.kinds, finer.actors, finer.buckets, finer.known, coarsest.actors, coarsest.buckets,
           typed.types, typed.actors, typed.children, typed.entries
      into dense_kinds, dense_actors, dense_buckets, dense_known, coarsest_actors, coarsest_buckets,
           new_types, new_actors, new_children, new_entries
      from (
        select array_agg(next.kind) as kinds, array_agg(next.actor) as actors, array_agg(next.bucket) as buckets,
               array_agg(known.known) as known
          from next
          cross join lateral (
            select next.fresh or exists (
              select from change_tally t where t.tenant = of_tenant and t.level = depth + 1 and t.bucket = next.bucket
                 and t.actor = next.actor and t.kind = next.kind) as known
          ) as known
      ) as finer
      cross join (
        select array_agg(cell.actor) as actors, array_agg(cell.bucket) as buckets
          from (
            select distinct merged.actor, merged.bucket from merged where depth = 0 and many_kinds and merged.actor > 0 and merged.kind = 0
          ) as cell
      ) as coarsest
      cross join (
        -- what comes to the actors' tallies that there were, by type
        select array_agg(new.type) as types, array_agg(new.actor) as actors, array_agg(new.child) as children,
               array_agg(new.entries) as entries
          from (
            select typed.type, added.actor, added.child, sum(added.entries)::bigint as entries
              from added
              join unnest(typed_kinds, types) as typed (kind, type) on typed.kind = added.kind
              where many_kinds and added.actor > 0 and not added.built
              group by 1, 2, 3
          ) as new
      ) as typed;
    if depth = 0 then
      written_actors := coarsest_actors;
      written_buckets := coarsest_buckets;
    end if;
    if many_kinds and written_actors is not null then
      perform change_fold_actor_types(of_tenant, depth, new_types, new_actors, new_children, new_entries, written_actors, written_buckets);
    end if;
    exit when dense_kinds is null;
    -- what no dense cell has is not looked at again
    if depth >= 1 then
      select array_agg(w.at), array_agg(w.kind), array_agg(w.actor)
        into ats, kinds, actors
        from unnest(ats, kinds, actors) as w (at, kind, actor)
        where (0, 0, w.at / change_cell(depth + 1)) in (select * from unnest(dense_kinds, dense_actors, dense_buckets))
           or (w.kind, 0, w.at / change_cell(depth + 1)) in (select * from unnest(dense_kinds, dense_actors, dense_buckets))
           or (0, w.actor, w.at / change_cell(depth + 1)) in (select * from unnest(dense_kinds, dense_actors, dense_buckets));
    end if;
  end loop;

  insert into change_folded as so_far (tenant, folds) values (of_tenant, 1)
    on conflict (tenant) do update set folds = so_far.folds + 1;
  return folded;
end
$$;
