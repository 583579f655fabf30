-- The tallies by type of actors, of the cells of one level that a fold has just written. An actor has them in a cell in which it has tallies of
-- many kinds (change_many_kinds): then of all types, and for good. In any other cell its kinds are added up. `added` has the numbers of entries
-- that the fold has added to children, which are numbered from 1970 on, by type and actor. The cells are those in which actors have tallies. The
-- answer is the number of tallies written.
create function change_fold_actor_types(of_tenant text, depth integer, types bigint[], actors bigint[], children bigint[], added bigint[],
                                        cell_actors bigint[], cell_buckets bigint[]) returns bigint
language plpgsql
-- planned once, not at each level of each fold: so it is told how to join, because it does not know the numbers of rows
set plan_cache_mode = force_generic_plan set enable_nestloop = off set enable_mergejoin = off set enable_sort = off as $$
declare
  parts constant bigint := change_cell(depth) / change_cell(depth + 1);
  typed_actors bigint[];
  typed_buckets bigint[];
  new_actors bigint[];
  new_buckets bigint[];
  summed_actors bigint[];
  summed_types bigint[];
  summed_buckets bigint[];
  summed_children smallint[];
  summed_upto bigint[];
  written bigint;
begin
  select array_agg(of.actor) filter (where of.is_typed), array_agg(of.bucket) filter (where of.is_typed),
         array_agg(of.actor) filter (where not of.is_typed), array_agg(of.bucket) filter (where not of.is_typed)
    into typed_actors, typed_buckets, new_actors, new_buckets
    from (
      select one.actor, one.bucket, known.is_typed
        from (
          select c.actor, c.bucket from unnest(cell_actors, cell_buckets) as c (actor, bucket)
        ) as one
        cross join lateral (
          select exists (
            select from change_tally t
              where t.tenant = of_tenant and t.level = depth and t.bucket = one.bucket and t.actor = one.actor and t.kind between -3 and -1
          ) as is_typed
          offset 0
        ) as known
        cross join lateral (
          select count(*) as kinds from (
            select from change_tally t
              where not known.is_typed and t.tenant = of_tenant and t.level = depth and t.bucket = one.bucket and t.actor = one.actor
                and t.kind > 0
              limit change_many_kinds()
          ) as t
          offset 0
        ) as counted
        where known.is_typed or counted.kinds >= change_many_kinds()
    ) as of;
  if typed_actors is null and new_actors is null then
    return 0;
  end if;

  with typed as materialized (
    select k.kind, change_type_number(k.type) as type from change_kind k where k.tenant = of_tenant
  ), known as materialized (
    select t.actor, t.kind as type, t.bucket, node.child, node.upto - coalesce(t.upto[node.i - 1], 0) as entries
      from unnest(typed_actors, typed_buckets) as c (actor, bucket)
      cross join lateral (
        select one.actor, one.kind, one.bucket, one.children, one.upto from change_tally one
          where one.tenant = of_tenant and one.level = depth and one.bucket = c.bucket and one.actor = c.actor and one.kind between -3 and -1
          offset 0
      ) as t
      cross join lateral unnest(t.children, t.upto) with ordinality as node (child, upto, i)
    union all
    -- what the fold takes, in cells that have tallies by type
    select new.actor, new.type, new.child / parts, (new.child % parts)::smallint, new.entries
      from unnest(types, actors, children, added) as new (type, actor, child, entries)
      where (new.actor, new.child / parts) in (select * from unnest(typed_actors, typed_buckets))
    union all
    -- the others have none yet: their kinds have all that is folded
    select t.actor, typed.type, t.bucket, node.child, node.upto - coalesce(t.upto[node.i - 1], 0)
      from unnest(new_actors, new_buckets) as c (actor, bucket)
      cross join lateral (
        select one.actor, one.kind, one.bucket, one.children, one.upto from change_tally one
          where one.tenant = of_tenant and one.level = depth and one.bucket = c.bucket and one.actor = c.actor and one.kind > 0
          offset 0
      ) as t
      join typed on typed.kind = t.kind
      cross join lateral unnest(t.children, t.upto) with ordinality as node (child, upto, i)
  ), summed as (
    select known.actor, known.type, known.bucket, known.child, sum(known.entries)::bigint as entries from known group by 1, 2, 3, 4
  )
  select array_agg(running.actor), array_agg(running.type), array_agg(running.bucket), array_agg(running.child), array_agg(running.upto)
    into summed_actors, summed_types, summed_buckets, summed_children, summed_upto
    from (
      select summed.*, sum(summed.entries) over (partition by summed.actor, summed.type, summed.bucket order by summed.child)::bigint as upto
        from summed
    ) as running;

  insert into change_tally as t (tenant, level, actor, kind, bucket, children, upto)
    select of_tenant, depth::smallint, s.actor, s.type, s.bucket, array_agg(s.child order by s.child), array_agg(s.upto order by s.child)
      from unnest(summed_actors, summed_types, summed_buckets, summed_children, summed_upto) as s (actor, type, bucket, child, upto)
      group by s.actor, s.type, s.bucket
    on conflict (tenant, level, bucket, actor, kind)
      do update set children = excluded.children, upto = excluded.upto;
  get diagnostics written = row_count;
  return written;
end
$$;
