-- Near where, counted from the newest, the entry stands that has `skip` newer ones: it is the one with `cell_skip`
-- newer ones before `cell_end`, in a cell of time that is `cell_length` long and has `entries` of the selections. There must
-- be more than `skip` entries. The beginnings of all cells on the way are `moments`, with as many entries at or after each
-- as `ranks` says.
create function change_seek(of_tenant text, actor_sets text[], kind_sets text[], skip bigint,
                            out cell_end bigint, out cell_length bigint, out cell_skip bigint, out entries bigint,
                            out moments bigint[], out ranks bigint[])
language plpgsql stable as $$
declare
  -- what may be read entry by entry in the end
  few constant bigint := 1024;
  cell bigint;
  child bigint;
  newer bigint;
  one_actor bigint;
  one_kind bigint;
  part_children smallint[];
  part_upto bigint[];
  i integer;
  cell_start bigint;
  sparsest bigint;
  any_dense boolean := true;
  -- keys that are too sparse for a tally of the cell: their entries are read
  places integer[] := '{}';
  actors bigint[] := '{}';
  kinds bigint[] := '{}';
  any_pending boolean := exists (select from change_delta d where d.tenant = of_tenant);
  -- what waits to be folded in the cell, found once: an import may leave hundreds of thousands
  pending_ats bigint[];
  pending_places integer[];
  pending_actors bigint[];
  pending_kinds bigint[];
begin
  cell_skip := skip;
  if not any_pending and cardinality(actor_sets) = 1 and strpos(actor_sets[1] || kind_sets[1], ',') = 0
     and (actor_sets[1] = '{0}' or kind_sets[1] = '{}') then
    -- one key: its running totals tell the child at once
    one_actor := (actor_sets[1]::bigint[])[1];
    one_kind := coalesce((kind_sets[1]::bigint[])[1], 0);
    for cell, entries in
      select t.bucket, t.upto[cardinality(t.upto)] from change_tally t
        where t.tenant = of_tenant and t.level = 0 and t.actor = one_actor and t.kind = one_kind order by t.bucket desc
    loop
      exit when cell_skip < entries;
      cell_skip := cell_skip - entries;
    end loop;
    for depth in 0..4 loop
      select t.children, t.upto into part_children, part_upto from change_tally t
        where t.tenant = of_tenant and t.level = depth and t.bucket = cell and t.actor = one_actor and t.kind = one_kind;
      cell_length := change_cell(depth + 1);
      cell := cell * (change_cell(depth) / cell_length);
      select moments || array_agg((cell + part.child) * cell_length),
             ranks || array_agg(skip - cell_skip + entries - coalesce(part_upto[part.place - 1], 0))
        into moments, ranks
        from unnest(part_children) with ordinality as part (child, place);
      i := width_bucket(entries - cell_skip - 1, part_upto) + 1;
      cell_skip := cell_skip - (entries - part_upto[i]);
      entries := part_upto[i] - coalesce(part_upto[i - 1], 0);
      cell := cell + part_children[i];
      cell_end := (cell + 1) * cell_length;
      exit when entries <= few;
    end loop;
    return;
  end if;

  if any_pending then
    select array_agg(one.at), array_agg(one.place), array_agg(one.actor), array_agg(one.kind)
      into pending_ats, pending_places, pending_actors, pending_kinds
      from change_pending(of_tenant, actor_sets, kind_sets) as one;
  end if;
  -- of each cell the child is chosen; of level 0 all cells are looked at as one
  for depth in 0..4 loop
    cell_length := change_cell(depth + 1);
    cell_start := coalesce(cell * change_cell(depth), 0);
    cell_end := coalesce((cell + 1) * change_cell(depth), 9223372036854775807);
    if pending_ats is not null and depth > 0 then
      select array_agg(one.at), array_agg(one.place), array_agg(one.actor), array_agg(one.kind)
        into pending_ats, pending_places, pending_actors, pending_kinds
        from unnest(pending_ats, pending_places, pending_actors, pending_kinds) as one (at, place, actor, kind)
        where one.at >= cell_start and one.at < cell_end
          -- hashed; what is read from its entries is counted there
          and (one.place, one.actor, one.kind) not in (select * from unnest(places, actors, kinds));
    end if;
    select moments || array_agg(summed.child * cell_length),
           ranks || array_agg(skip - cell_skip + summed.newer + summed.entries),
           (array_agg(summed.child order by summed.child) filter (where summed.newer <= cell_skip))[1],
           (array_agg(summed.entries order by summed.child) filter (where summed.newer <= cell_skip))[1],
           (array_agg(summed.newer order by summed.child) filter (where summed.newer <= cell_skip))[1],
           (array_agg(summed.sparsest order by summed.child) filter (where summed.newer <= cell_skip))[1]
      into moments, ranks, child, entries, newer, sparsest
      from (
        select part.child, sum(part.entries) as entries, min(part.sparsest) as sparsest,
               sum(sum(part.entries)) over (order by part.child desc) - sum(part.entries) as newer
          from (
            select t.bucket * (change_cell(depth) / cell_length) + one.child as child,
                   case when t.actor = 0 or t.kind > 0 or asked.kinds = '{}' then one.upto - coalesce(t.upto[one.i - 1], 0)
                        else 0 end as entries,
                   case when t.actor = 0 or t.kind = 0 then one.upto - coalesce(t.upto[one.i - 1], 0) end as sparsest
              from change_selections(actor_sets, kind_sets) asked
              cross join lateral (
                select tally.actor, tally.kind, tally.bucket, tally.children, tally.upto from change_tally tally
                  where tally.tenant = of_tenant and tally.level = depth and tally.actor = any (asked.actors)
                    and tally.kind = any (asked.tallied)
                    and tally.bucket >= coalesce(cell, 0) and tally.bucket <= coalesce(cell, 9223372036854775807)
                  offset 0
              ) as t
              cross join lateral unnest(t.children, t.upto) with ordinality as one (child, upto, i)
            union all
            select direct.at / cell_length, 1, null
              from change_direct(of_tenant, kind_sets, places, actors, kinds, cell_start, cell_end) as direct
              where cardinality(places) > 0
            union all
            select pending.at / cell_length, 1, null from unnest(pending_ats) as pending (at)
          ) as part
          group by part.child
      ) as summed;
    cell_skip := cell_skip - newer;
    cell_end := (child + 1) * cell_length;
    exit when entries <= few or depth = 4;
    if sparsest < change_dense() then
      select coalesce(bool_or(one.entries >= change_dense()), false),
             places || array_agg(one.place) filter (where one.entries < change_dense()),
             actors || array_agg(one.actor) filter (where one.entries < change_dense()),
             kinds || array_agg(one.kind) filter (where one.entries < change_dense())
        into any_dense, places, actors, kinds
        from (
          select asked.place, t.actor, t.kind, t.upto[part.i] - coalesce(t.upto[part.i - 1], 0) as entries
            from change_selections(actor_sets, kind_sets) asked
            cross join lateral (
              select tally.actor, tally.kind, tally.children, tally.upto from change_tally tally
                where tally.tenant = of_tenant and tally.level = depth and tally.bucket = child * cell_length / change_cell(depth)
                  and tally.actor = any (asked.actors)
                  and tally.kind = any (case when asked.actors = '{0}' then asked.kinds else '{0}' end)
                offset 0
            ) as t
            cross join lateral (
              select width_bucket((child % (change_cell(depth) / cell_length))::smallint, t.children) as i
            ) as part
            where t.children[part.i] = child % (change_cell(depth) / cell_length)
        ) as one;
    end if;
    exit when not any_dense and not any_pending;
    cell := child;
  end loop;
end
$$;
