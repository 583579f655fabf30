-- Counts by type what was folded before there were tallies by type (change_type_backlog), from the finest cells to the coarsest. Answers
-- whether all of it is counted; null where a fold of the tenant is at work. It reads some `most` entries and may leave others. To be called
-- alone in a transaction that is repeatable read, as change_fold is, and for the same reason.
create function change_fold_types(of_tenant text, most bigint default 100000) returns boolean
-- planned each time, with the numbers of rows there are; without sorting for the reason that change_counts has
language plpgsql set plan_cache_mode = force_custom_plan set enable_mergejoin = off set enable_sort = off set jit = off as $$
declare
  depth integer;
  first_bucket bigint;
  cell bigint;
  part bigint;
  buckets bigint[];
  reads bigint;
  -- what is read of the entries: whole finest cells, of others the children that have no tallies
  length bigint;
  numbers bigint[];
  counted_types bigint[];
  counted_children bigint[];
  counted_entries bigint[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('change_fold ' || of_tenant, 0)) then
    return null;
  end if;
  select b.level, b.bucket into depth, first_bucket from change_type_backlog b where b.tenant = of_tenant;
  if depth is null then
    return true;
  end if;
  -- A fold whose snapshot is from before this transaction, or the other way round, fails here and is repeated.
  insert into change_folded as so_far (tenant, folds) values (of_tenant, 1)
    on conflict (tenant) do update set folds = so_far.folds + 1;
  cell := change_cell(depth);
  part := change_cell(depth + 1);
  with recursive next as (
    select null::bigint as bucket, 0::bigint as reads
    union all
    select one.bucket, next.reads + one.reads
      from next
      cross join lateral (
        select t.bucket,
               64 + case when depth = 4 then t.upto[cardinality(t.upto)] else (
                 select coalesce(sum(child.entries), 0)::bigint
                   from (select t.upto[i] - coalesce(t.upto[i - 1], 0) as entries from generate_subscripts(t.upto, 1) as i) as child
                   where child.entries < change_dense()) end as reads
          from change_tally t
          where t.tenant = of_tenant and t.level = depth and t.actor = 0 and t.kind = 0
            and t.bucket >= coalesce(next.bucket + 1, first_bucket)
          order by t.bucket limit 1
      ) as one
      where next.reads < most
  )
  select array_agg(next.bucket) filter (where next.bucket is not null), max(next.reads) into buckets, reads from next;

  if depth = 4 then
    length := cell;
    numbers := coalesce(buckets, '{}');
  else
    length := part;
    select array_agg(child.number) filter (where not child.is_dense), array_agg(child.number) filter (where child.is_dense)
      into numbers, counted_children
      from (
        select t.bucket * (cell / part) + c.child as number,
               exists (select from change_tally finer
                 where finer.tenant = of_tenant and finer.level = depth + 1 and finer.bucket = t.bucket * (cell / part) + c.child
                   and finer.actor = 0 and finer.kind = 0) as is_dense
          from unnest(buckets) as of (bucket)
          cross join lateral (
            select tally.bucket, tally.children from change_tally tally
              where tally.tenant = of_tenant and tally.level = depth and tally.bucket = of.bucket
                and tally.actor = 0 and tally.kind = 0 offset 0
          ) as t
          cross join lateral unnest(t.children) as c (child)
      ) as child;
  end if;

  select array_agg(counted.type), array_agg(counted.child), array_agg(counted.entries)
    into counted_types, counted_children, counted_entries
    from (
      select t.kind as type, finer.number as child, t.entries
        from unnest(counted_children) as finer (number)
        cross join lateral (
          select tally.kind, tally.upto[cardinality(tally.upto)] as entries from change_tally tally
            where tally.tenant = of_tenant and tally.level = depth + 1 and tally.bucket = finer.number
              and tally.actor = 0 and tally.kind < 0 offset 0
        ) as t
      union all
      select change_type_number(k.type), of_kind.child, sum(of_kind.entries)::bigint
        from (
          select e.kind, e.at / part as child, count(*) as entries
            from unnest(numbers) as of (number)
            cross join lateral (
              select one.at, one.kind from change_entry one
                where one.tenant = of_tenant and one.at >= of.number * length and one.at < (of.number + 1) * length
                order by one.at, one.sequence offset 0
            ) as e
            group by 1, 2
          union all
          -- no tally has those yet
          select p.kind, p.at / part, -count(*)
            from change_delta d
            cross join lateral unnest(d.ats, d.kinds, d.actors) as p (at, kind, actor)
            where d.tenant = of_tenant and p.at / length in (select unnest(numbers))
            group by 1, 2
        ) as of_kind
        join change_kind k on k.tenant = of_tenant and k.kind = of_kind.kind
        group by 1, 2
        having sum(of_kind.entries) > 0
    ) as counted;

  insert into change_tally (tenant, level, actor, kind, bucket, children, upto)
    select of_tenant, depth::smallint, 0, running.type, running.child / (cell / part),
           array_agg((running.child % (cell / part))::smallint order by running.child), array_agg(running.upto order by running.child)
      from (
        select counted.type, counted.child,
               sum(counted.entries) over (partition by counted.type, counted.child / (cell / part) order by counted.child)::bigint as upto
          from unnest(counted_types, counted_children, counted_entries) as counted (type, child, entries)
      ) as running
      group by running.type, running.child / (cell / part);

  if reads >= most then
    update change_type_backlog b set bucket = buckets[cardinality(buckets)] + 1 where b.tenant = of_tenant;
  elsif depth > 0 then
    update change_type_backlog b set level = depth - 1, bucket = 0 where b.tenant = of_tenant;
  else
    delete from change_type_backlog b where b.tenant = of_tenant;
    return true;
  end if;
  return false;
end
$$;
