-- Moves deltas into the tallies, the oldest first, and returns the number of their entries; null while another fold of
-- the tenant runs. It takes about `most` entries and may leave some, and all that have no position yet
-- (change_position_give).
--
-- Call it alone in a repeatable read transaction: the entries it sees, without those of the deltas that it leaves, are
-- then exactly those that the tallies count afterwards. So a cell that has become dense can be built from its entries.
--
-- It goes from the coarsest cells to the finest ones. On each level it adds the entries to the rows of the keys (the
-- tenant, a kind, an actor, and an actor's kinds), and finds out which children have become dense. These are the
-- cells of the next level. One that has no row there yet is built. Results are passed on in arrays, because a cluster
-- refuses a statement that writes in a WITH query and reads other rows.
--
-- A cell of an actor has rows of all its kinds or of none (change_dense_pairs). Existing rows of kinds are kept up to
-- date, and imply those of the coarser cells: change_count relies on both.
--
-- Planned each time, with the numbers of rows there are. A cell is one range of the index in whose order it is read
-- (see change_count).
create function change_fold(of_tenant text, most bigint default 500000) returns bigint
language plpgsql set plan_cache_mode = force_custom_plan set enable_mergejoin = off set enable_sort = off
set jit = off as $$
declare
  highest_kind constant bigint := 9223372036854775807;
  folded bigint := 0;
  last_delta bigint;
  -- of those that are left
  first_left bigint;
  taking record;
  cell bigint;
  part bigint;
  -- children of a cell
  parts bigint;
  -- the entries that are taken
  ats bigint[];
  kinds bigint[];
  actors bigint[];
  -- the cells of a level that are to have rows: of the tenant, of a kind, of an actor (0: not distinguished) or of the
  -- kinds of an actor (kind -1), and whether it is known what they hold already, in rows or because they are new, so
  -- that only what is new has to be added; on level 0 only those of the kinds of an actor
  dense_kinds bigint[] := '{}';
  dense_actors bigint[] := '{}';
  dense_buckets bigint[] := '{}';
  dense_known boolean[] := '{}';
  -- what the rows of a level hold afterwards, by child; whether the fold has touched it, and whether it was empty
  -- before
  merged_kinds bigint[];
  merged_actors bigint[];
  merged_buckets bigint[];
  merged_children bigint[];
  merged_entries bigint[];
  merged_touched boolean[];
  merged_fresh boolean[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('change_fold ' || of_tenant, 0)) then
    return null;
  end if;
  for taking in
    select d.delta, cardinality(d.ats) as entries from change_delta d
      where d.tenant = of_tenant and d.position is not null order by d.delta
  loop
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
      where d.tenant = of_tenant and d.delta <= last_delta and d.position is not null and d.day is not null
      group by d.day, part.measure
    on conflict (tenant, day, measure) do update set amount = so_far.amount + excluded.amount;
  insert into change_way as known (tenant, recorder, recorded)
    select of_tenant, d.recorder, max(d.recorded)
      from change_delta d
      where d.tenant = of_tenant and d.delta <= last_delta and d.position is not null and d.recorder is not null
      group by d.recorder
    on conflict (tenant, recorder) do update set recorded = greatest(known.recorded, excluded.recorded);
  with taken as (
    delete from change_delta d where d.tenant = of_tenant and d.delta <= last_delta and d.position is not null
      returning d.ats, d.kinds, d.actors
  )
  select array_agg(pending.at), array_agg(pending.kind), array_agg(pending.actor)
    into ats, kinds, actors
    from taken cross join lateral unnest(taken.ats, taken.kinds, taken.actors) as pending (at, kind, actor);
  first_left := (
    select min(d.delta) from change_delta d
      where d.tenant = of_tenant and (d.position is null or d.delta > last_delta));

  select array_agg(-1), array_agg(of.actor), array_agg(of.bucket), array_agg(of.earlier is null or of.by_kind)
    into dense_kinds, dense_actors, dense_buckets, dense_known
    from (
      select added.actor, added.bucket, added.entries, own.entries as earlier, exists (
               select from change_tally t where t.tenant = of_tenant and t.level = 0 and t.bucket = added.bucket
                  and t.actor = added.actor and t.kind > 0 offset 0) as by_kind
        from (
          select w.actor, w.at / change_cell(0) as bucket, count(*) as entries
            from unnest(ats, actors) as w (at, actor) group by 1, 2
        ) as added
        cross join lateral (
          -- null: there is none
          select max(t.upto[cardinality(t.upto)]) as entries from change_tally t
            where t.tenant = of_tenant and t.level = 0 and t.bucket = added.bucket and t.actor = added.actor
              and t.kind = 0
        ) as own
    ) as of
    where of.by_kind or coalesce(of.earlier, 0) + of.entries >= change_dense_pairs();

  for depth in 0..4 loop
    cell := change_cell(depth);
    part := change_cell(depth + 1);
    parts := cell / part;
    with entry as materialized (
      -- as many as have to be distinguished: children are numbered from 1970 on
      select w.kind, w.actor, w.at / part as child, count(*) as entries
        from unnest(ats, kinds, actors) as w (at, kind, actor) group by 1, 2, 3
    ), by_kind as materialized (
      select entry.kind, entry.child, sum(entry.entries) as entries from entry group by 1, 2
    ), dense as materialized (
      select d.kind, d.actor, d.bucket, d.known
        from unnest(dense_kinds, dense_actors, dense_buckets, dense_known) as d (kind, actor, bucket, known)
    ), built as materialized (
      select dense.kind as of_kind, dense.actor as of_actor, e.kind, e.at / part as child, 1 as entries
        from dense
        cross join lateral (
          select one.at, one.kind from change_entry one
            where one.tenant = of_tenant and one.at >= dense.bucket * cell and one.at < (dense.bucket + 1) * cell
            order by one.at, one.sequence offset 0
        ) as e
        where not dense.known and dense.kind = 0 and dense.actor = 0
      union all
      select dense.kind, dense.actor, dense.kind, e.at / part, 1
        from dense
        cross join lateral (
          select one.at from change_entry one
            where one.tenant = of_tenant and one.kind = dense.kind
              and one.at >= dense.bucket * cell and one.at < (dense.bucket + 1) * cell
            order by one.at, one.sequence offset 0
        ) as e
        where not dense.known and dense.kind > 0
      union all
      select dense.kind, dense.actor, e.kind, e.at / part, 1
        from dense
        cross join lateral (
          select one.at, one.kind from change_entry one
            where one.tenant = of_tenant and one.actor = dense.actor
              and one.at >= dense.bucket * cell and one.at < (dense.bucket + 1) * cell
            order by one.at, one.sequence offset 0
        ) as e
        where not dense.known and dense.actor > 0
      union all
      -- without what is left in deltas
      select dense.kind, dense.actor, unfolded.kind, unfolded.child, -1
        from (
          -- fenced: what is left may be millions of entries, and each is looked up under its four keys
          select pending.kind, pending.at / part as child, pending.at / cell as bucket, key.kind as key_kind,
                 key.actor as key_actor
            from change_delta d
            cross join lateral unnest(d.ats, d.kinds, d.actors) as pending (at, kind, actor)
            cross join lateral (
              values (0::bigint, 0::bigint), (pending.kind, 0), (0, pending.actor), (-1, pending.actor)
            ) as key (kind, actor)
            where (select not bool_and(one.known) from dense one)
              and d.tenant = of_tenant and d.delta >= first_left
            offset 0
        ) as unfolded
        join dense on not dense.known and dense.kind = unfolded.key_kind and dense.actor = unfolded.key_actor
         and dense.bucket = unfolded.bucket
    ), added as materialized (
      select 0::bigint as kind, 0::bigint as actor, by_kind.child, sum(by_kind.entries) as entries, false as built
        from by_kind
        where depth = 0 or (0, 0, by_kind.child / parts) in (
          select dense.kind, dense.actor, dense.bucket from dense where dense.known)
        group by by_kind.child
      union all
      select by_kind.kind, 0, by_kind.child, by_kind.entries, false
        from by_kind
        where depth = 0 or (by_kind.kind, 0, by_kind.child / parts) in (
          select dense.kind, dense.actor, dense.bucket from dense where dense.known)
      union all
      select 0, entry.actor, entry.child, sum(entry.entries), false
        from entry
        where depth = 0 or (0, entry.actor, entry.child / parts) in (
          select dense.kind, dense.actor, dense.bucket from dense where dense.known)
        group by entry.actor, entry.child
      union all
      select entry.kind, entry.actor, entry.child, entry.entries, false
        from entry
        where (-1, entry.actor, entry.child / parts) in (
          select dense.kind, dense.actor, dense.bucket from dense where dense.known)
      union all
      select key.kind, built.of_actor, built.child, sum(built.entries), true
        from built
        cross join lateral (select case built.of_kind when -1 then built.kind else built.of_kind end) as key (kind)
        group by key.kind, built.of_actor, built.child
    ), merged as materialized (
      select side.kind, side.actor, side.bucket, side.child, sum(side.entries)::bigint as entries,
             bool_or(side.new) as touched,
             -- before this there was none, so that what is new is all that there is
             not bool_or(side.built) and not bool_or(not side.new) as fresh
        from (
          select added.kind, added.actor, added.child / parts as bucket, added.child % parts as child, added.entries,
                 added.built, true as new
            from added
          union all
          select t.kind, t.actor, t.bucket, node.child, node.upto - coalesce(t.upto[node.i - 1], 0), false, false
            from (select distinct added.kind, added.actor, added.child / parts as bucket from added) as key
            cross join lateral (
              select tally.kind, tally.actor, tally.bucket, tally.children, tally.upto from change_tally tally
                where tally.tenant = of_tenant and tally.level = depth and tally.bucket = key.bucket
                  and tally.actor = key.actor and tally.kind = key.kind offset 0
            ) as t
            cross join lateral unnest(t.children, t.upto) with ordinality as node (child, upto, i)
        ) as side
        group by 1, 2, 3, 4
        having sum(side.entries) > 0
    )
    select array_agg(merged.kind), array_agg(merged.actor), array_agg(merged.bucket), array_agg(merged.child),
           array_agg(merged.entries), array_agg(merged.touched), array_agg(merged.fresh)
      into merged_kinds, merged_actors, merged_buckets, merged_children, merged_entries, merged_touched, merged_fresh
      from merged;

    insert into change_tally as t (tenant, level, actor, kind, bucket, children, upto)
      select of_tenant, depth::smallint, running.actor, running.kind, running.bucket,
             array_agg(running.child::smallint order by running.child), array_agg(running.upto order by running.child)
        from (
          select merged.*, sum(entries) over (partition by kind, actor, bucket order by child)::bigint as upto
            from unnest(merged_kinds, merged_actors, merged_buckets, merged_children, merged_entries)
              as merged (kind, actor, bucket, child, entries)
        ) as running
        group by running.kind, running.actor, running.bucket
      on conflict (tenant, level, bucket, actor, kind)
        do update set children = excluded.children, upto = excluded.upto;

    select array_agg(next.kind), array_agg(next.actor), array_agg(next.bucket),
           array_agg(next.fresh or next.has_rows)
      into dense_kinds, dense_actors, dense_buckets, dense_known
      from (
        select key.kind, merged.actor, merged.bucket * parts + merged.child as bucket, merged.entries, merged.fresh,
               exists (
                 select from change_tally t
                   where t.tenant = of_tenant and t.level = depth + 1
                     and t.bucket = merged.bucket * parts + merged.child and t.actor = merged.actor
                     and t.kind between abs(key.kind) and case key.kind when -1 then highest_kind else key.kind end
                   offset 0
               ) as has_rows
          from unnest(merged_kinds, merged_actors, merged_buckets, merged_children, merged_entries, merged_touched,
                      merged_fresh) as merged (kind, actor, bucket, child, entries, touched, fresh)
          cross join lateral (
            select merged.kind
            union all
            select -1 where merged.kind = 0 and merged.actor > 0
          ) as key (kind)
          where depth < 4 and merged.touched and merged.entries >= change_dense()
            and (merged.kind = 0 or merged.actor = 0)
      ) as next
      where next.kind >= 0 or next.has_rows or next.entries >= change_dense_pairs();
    exit when dense_kinds is null;
    -- what no dense cell has is not looked at again
    if depth >= 1 then
      select array_agg(w.at), array_agg(w.kind), array_agg(w.actor)
        into ats, kinds, actors
        from unnest(ats, kinds, actors) as w (at, kind, actor)
        where (0, 0, w.at / part) in (select * from unnest(dense_kinds, dense_actors, dense_buckets))
           or (w.kind, 0, w.at / part) in (select * from unnest(dense_kinds, dense_actors, dense_buckets))
           or (0, w.actor, w.at / part) in (select * from unnest(dense_kinds, dense_actors, dense_buckets));
    end if;
  end loop;

  insert into change_folded as so_far (tenant, folds) values (of_tenant, 1)
    on conflict (tenant) do update set folds = so_far.folds + 1;
  return folded;
end
$$;
