-- How the change history is read; the tables are those of 0003-change-history.sql.

-- What was here before, from a database that has it.
do $$
declare
  old record;
begin
  for old in
    select oid::regprocedure as signature from pg_proc
      where pronamespace = current_schema()::regnamespace
        and proname in ('change_scans', 'change_direct', 'change_pending', 'change_rank', 'change_seek', 'change_histogram',
                        'change_newest', 'change_page', 'change_read', 'change_read_documents', 'change_read_window')
  loop
    execute 'drop function ' || old.signature;
  end loop;
end
$$;

-- Whatever is asked for in a cell stands together, whoever and whatever it is of.
alter table change_tally drop constraint change_tally_pkey, add primary key (tenant, level, bucket, actor, kind);

-- How often a tenant's deltas have been folded: while this stays the same, so do its tallies.
create table change_folded (
  tenant text collate "C" primary key references tenant (tenant),
  folds bigint not null
) with (fillfactor = 50);

-- Where the numbers of kinds and actors, and those of folds, mean the same: another one after the database was put back to
-- what it was before, for which its server has to be started anew or its tables to be made anew.
create function change_lineage() returns text language sql stable as
  $$ select extract(epoch from pg_postmaster_start_time()) || ' ' || 'change_actor'::regclass::oid $$;

-- What is asked for is a list of selections, and no entry may belong to two of them: selection i has
-- actor_sets[i] and kind_sets[i], arrays written as texts (an array of arrays could not have them of unlike lengths).
--   {0} and {k,l}    entries of the kinds k and l, by whomever
--   {0} and {0}      all entries
--   {a,b} and {}     entries of the actors a and b, of any kind
--   {a,b} and {k,l}  entries of the actors a and b of the kinds k and l
-- A key is a range of an index, and what one tally is for: (0, kind) in a selection by kinds, (actor, 0) in one by actors.
-- It tells how dense the history is; in a selection by actors and kinds what counts are the tallies of both, which are
-- there wherever the actor's is.
create function change_selections(actor_sets text[], kind_sets text[])
returns table (place integer, actors bigint[], kinds bigint[], tallied bigint[]) language sql stable as $$
  select s.place::integer, s.actors::bigint[], s.kinds::bigint[],
         case when s.actors = '{0}' then s.kinds::bigint[] else 0::bigint || s.kinds::bigint[] end
    from unnest(actor_sets, kind_sets) with ordinality as s (actors, kinds, place) offset 0
$$;

-- The cells that a moment is in, one a level, as far as it is not where the cell begins: the level above then has the
-- whole of it. `child` is the place of the moment's part, which ends at `before`.
create function change_cells(moment bigint)
returns table (depth integer, bucket bigint, child smallint, before bigint, whole boolean) language sql stable as $$
  select level.depth, moment / level.cell, ((moment % level.cell) / level.part)::smallint,
         (moment / level.part + 1) * level.part, moment % level.part = 0
    from (values (0, 88473600000, 2764800000), (1, 2764800000, 86400000), (2, 86400000, 3600000), (3, 3600000, 60000),
                 (4, 60000, 1000)) as level (depth, cell, part)
    where level.depth = 0 or moment % level.cell <> 0
$$;

-- The times of the keys' entries in [since, before), read from the entries themselves. Here and below, what is read for a
-- key is fenced by "offset 0": each key is a range of an index, and a plan from when the tables were small must not
-- go through all of what an import has brought since, once for each key.
create function change_direct(of_tenant text, kind_sets text[], places integer[], actors bigint[], kinds bigint[],
                              since bigint, before bigint)
returns table (at bigint) language sql stable as $$
  select e.at
    from unnest(places, actors, kinds) as key (place, actor, kind)
    cross join lateral (
      select one.at from change_entry one
        where one.tenant = of_tenant and one.kind = key.kind and one.at >= since and one.at < before offset 0
    ) as e
    where key.kind > 0
  union all
  select e.at
    from unnest(places, actors, kinds) as key (place, actor, kind)
    cross join lateral (
      select one.at from change_entry one
        where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < before
          and (kind_sets[key.place] = '{}' or one.kind = any (kind_sets[key.place]::bigint[])) offset 0
    ) as e
    where key.actor > 0
  union all
  select e.at
    from unnest(places, actors, kinds) as key (place, actor, kind)
    cross join lateral (
      select one.at from change_entry one where one.tenant = of_tenant and one.at >= since and one.at < before offset 0
    ) as e
    where key.actor = 0 and key.kind = 0
$$;

-- Which entries wait to be folded, with the key that each belongs to. Hashed, whatever the planner makes of lengths it
-- cannot know: while an import runs, entries times keys would be hundreds of millions of pairs.
create function change_pending(of_tenant text, actor_sets text[], kind_sets text[])
returns table (at bigint, place integer, actor bigint, kind bigint) language plpgsql stable set enable_nestloop = off as $$
begin
  return query
    with pending as materialized (
      select one.at, one.kind, one.actor
        from change_delta d
        cross join lateral unnest(d.ats, d.kinds, d.actors) as one (at, kind, actor)
        where d.tenant = of_tenant
    ), asked as materialized (
      select * from change_selections(actor_sets, kind_sets)
    )
    select p.at, wanted.place, 0::bigint, wanted.kind
      from pending p
      join (select asked.place, unnest(asked.kinds) as kind from asked where asked.actors = '{0}') as wanted on wanted.kind = p.kind
    union all
    select p.at, asked.place, 0::bigint, 0::bigint
      from pending p cross join asked where asked.actors = '{0}' and asked.kinds = '{0}'
    union all
    select p.at, wanted.place, wanted.actor, 0::bigint
      from pending p
      join (select asked.place, asked.kinds, unnest(asked.actors) as actor from asked where asked.actors <> '{0}') as wanted
        on wanted.actor = p.actor
      where wanted.kinds = '{}' or p.kind = any (wanted.kinds);
end
$$;

-- How many entries at or after `since` the selections have: of each cell that holds `since`, what is after it. A key that is
-- too sparse to have a cell further down is counted from its entries, up to where its finest cell knows more.
create function change_rank(of_tenant text, actor_sets text[], kind_sets text[], since bigint)
returns bigint language plpgsql stable as $$
declare
  total bigint;
  pending bigint;
  direct_places integer[];
  direct_actors bigint[];
  direct_kinds bigint[];
  direct_before bigint[];
begin
  with node as materialized (
    select asked.place, asked.kinds, t.actor, t.kind, cell.depth, cell.before, cell.whole,
           t.upto[cardinality(t.upto)] - coalesce(t.upto[child.i], 0) as after,
           case when t.children[child.i] = cell.child then t.upto[child.i] - coalesce(t.upto[child.i - 1], 0) else 0 end as inside
      from change_selections(actor_sets, kind_sets) asked
      cross join change_cells(since) cell
      cross join lateral (
        select one.actor, one.kind, one.children, one.upto from change_tally one
          where one.tenant = of_tenant and one.level = cell.depth and one.bucket = cell.bucket
            and one.actor = any (asked.actors) and one.kind = any (asked.tallied)
          offset 0
      ) as t
      cross join lateral (select width_bucket(cell.child, t.children) as i) as child
  ), direct as materialized (
    -- seconds have no tallies of their own, and a child that is counted whole needs none
    select node.place, node.kinds, node.actor, node.kind, node.before from node
      where (node.actor = 0 or node.kind = 0) and not node.whole and node.inside > 0
        and (node.inside < change_dense() or node.depth = 4)
  )
  select coalesce((select sum(case when node.whole then node.after + node.inside else node.after end) from node
                     where node.actor = 0 or node.kind > 0 or node.kinds = '{}'), 0)
         + coalesce((select sum(t.upto[cardinality(t.upto)])
                       from change_selections(actor_sets, kind_sets) asked
                       join change_tally t on t.tenant = of_tenant and t.level = 0 and t.bucket > since / change_cell(0)
                        and t.actor = any (asked.actors) and t.kind = any (asked.tallied)
                       where t.actor = 0 or t.kind > 0 or asked.kinds = '{}'), 0)
         + (select count(*) from direct
              cross join lateral (
                select from change_entry one
                  where one.tenant = of_tenant and one.kind = direct.kind and one.at >= since and one.at < direct.before offset 0
              ) as e
              where direct.kind > 0)
         + (select count(*) from direct
              cross join lateral (
                select from change_entry one
                  where one.tenant = of_tenant and one.actor = direct.actor and one.at >= since and one.at < direct.before
                    and (direct.kinds = '{}' or one.kind = any (direct.kinds)) offset 0
              ) as e
              where direct.actor > 0)
         + (select count(*) from direct
              cross join lateral (
                select from change_entry one
                  where one.tenant = of_tenant and one.at >= since and one.at < direct.before offset 0
              ) as e
              where direct.actor = 0 and direct.kind = 0),
         keys.places, keys.actors, keys.kinds, keys.before
    into total, direct_places, direct_actors, direct_kinds, direct_before
    from (select array_agg(place) as places, array_agg(actor) as actors, array_agg(kind) as kinds, array_agg(before) as before
            from direct) as keys;

  if exists (select from change_delta d where d.tenant = of_tenant) then
    select count(*) into pending
      from change_pending(of_tenant, actor_sets, kind_sets) as one
      left join unnest(direct_places, direct_actors, direct_kinds, direct_before) as direct (place, actor, kind, before)
        using (place, actor, kind)
      where one.at >= since and (direct.before is null or one.at >= direct.before);
    total := total + pending;
  end if;
  return total;
end
$$;

-- Near where, counted from the newest, the entry stands that has `skip` newer ones: it is the one with `cell_skip`
-- newer ones before `cell_end`, in a cell of time that is `cell_length` long and has `entries` of the selections. There must
-- be more than `skip` entries.
create function change_seek(of_tenant text, actor_sets text[], kind_sets text[], skip bigint,
                            out cell_end bigint, out cell_length bigint, out cell_skip bigint, out entries bigint)
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
      i := width_bucket(entries - cell_skip - 1, part_upto) + 1;
      cell_skip := cell_skip - (entries - part_upto[i]);
      entries := part_upto[i] - coalesce(part_upto[i - 1], 0);
      cell_length := change_cell(depth + 1);
      cell := cell * (change_cell(depth) / cell_length) + part_children[i];
      cell_end := (cell + 1) * cell_length;
      exit when entries <= few;
    end loop;
    return;
  end if;

  -- of each cell the child is chosen; of level 0 all cells are looked at as one
  for depth in 0..4 loop
    cell_length := change_cell(depth + 1);
    cell_start := coalesce(cell * change_cell(depth), 0);
    cell_end := coalesce((cell + 1) * change_cell(depth), 9223372036854775807);
    select summed.child, summed.entries, summed.newer, summed.sparsest into child, entries, newer, sparsest
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
            select pending.at / cell_length, 1, null
              from change_pending(of_tenant, actor_sets, kind_sets) as pending
              where any_pending and pending.at >= cell_start and pending.at < cell_end
                and not exists (
                  select from unnest(places, actors, kinds) direct (place, actor, kind)
                    where direct.place = pending.place and direct.actor = pending.actor and direct.kind = pending.kind)
          ) as part
          group by part.child
      ) as summed
      where summed.newer <= cell_skip order by summed.child limit 1;
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

-- A page over intervals of time, newest first, each with selections of its own: those from selection_ends[i - 1] + 1 to
-- selection_ends[i]. An interval is [sinces[i], befores[i]); an infinite one ends at null. The first row has the total
-- alone; the others have the entries of the page. All is read in the snapshot of the calling statement. `known` is how
-- many entries the first interval has, which is then infinite; null where that is to be found out.
create function change_page(of_tenant text, now bigint, horizon bigint, sinces bigint[], befores bigint[],
                            selection_ends integer[], actor_sets text[], kind_sets text[], skip bigint, size bigint,
                            known bigint default null)
returns table (total bigint, at bigint, sequence bigint) language plpgsql stable rows 50
-- planned once: its statements and those of what it calls are ranges of indexes whatever they are given, and to plan
-- them anew takes several times as long as to run them; a plan from when the tables were small must not go through
-- all of what an import has brought since
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  counts bigint[] := '{}';
  before_counts bigint[] := '{}';
  newer bigint := 0;
  taken bigint := 0;
  left_out bigint;
  added bigint;
  some_actors text[];
  some_kinds text[];
  start record;
  wanted bigint;
  span bigint;
begin
  total := 0;
  for i in 1..cardinality(sinces) loop
    some_actors := actor_sets[coalesce(selection_ends[i - 1], 0) + 1:selection_ends[i]];
    some_kinds := kind_sets[coalesce(selection_ends[i - 1], 0) + 1:selection_ends[i]];
    sinces[i] := greatest(sinces[i], horizon);
    before_counts[i] := 0;
    counts[i] := 0;
    continue when befores[i] <= sinces[i];
    if befores[i] is not null then
      before_counts[i] := change_rank(of_tenant, some_actors, some_kinds, befores[i]);
    end if;
    if i = 1 and known is not null then
      counts[i] := known;
    else
      counts[i] := change_rank(of_tenant, some_actors, some_kinds, sinces[i]) - before_counts[i];
    end if;
    total := total + counts[i];
  end loop;
  return next;
  if size = 0 then
    return;
  end if;

  for i in 1..cardinality(sinces) loop
    left_out := greatest(skip - newer, 0);
    if counts[i] > left_out then
      some_actors := actor_sets[coalesce(selection_ends[i - 1], 0) + 1:selection_ends[i]];
      some_kinds := kind_sets[coalesce(selection_ends[i - 1], 0) + 1:selection_ends[i]];
      select coalesce(befores[i], 9223372036854775807) as cell_end, left_out as cell_skip,
             greatest(least(befores[i], now) - sinces[i], 1) as cell_length, counts[i] as entries
        into start;
      if left_out > 200 then
        select * into start from change_seek(of_tenant, some_actors, some_kinds, before_counts[i] + left_out);
        if start.cell_end > befores[i] then
          start.cell_end := befores[i];
          start.cell_skip := left_out;
        end if;
      end if;
      wanted := start.cell_skip + size - taken;
      -- a cell that is known to have them all, or twice as long as it takes where they are spread evenly
      span := start.cell_length;
      if wanted > start.entries or left_out <= 200 then
        span := 1000 + 2 * wanted * start.cell_length / greatest(start.entries, 1);
      end if;
      return query
        select total, newest.at, newest.sequence
          from change_newest(of_tenant, now, some_actors, some_kinds, sinces[i], start.cell_end, start.cell_skip, size - taken,
                             span) as newest;
      get diagnostics added = row_count;
      taken := taken + added;
      exit when taken >= size;
    end if;
    newer := newer + counts[i];
  end loop;
end
$$;

-- The newest entries of one selection from a time on, without the first `skip`, `size` at most; of each key that many
-- are merged.
create function change_newest_from(of_tenant text, of_actors bigint[], of_kinds bigint[], since bigint, skip bigint, size bigint)
returns setof change_entry language sql stable as $$
  select newest.* from (
    select e.* from unnest(of_kinds) as key (kind)
      cross join lateral (
        select one.* from change_entry one
          where one.tenant = of_tenant and one.kind = key.kind and one.at >= since
          order by one.at desc, one.sequence desc limit skip + size
      ) as e
      where of_actors = '{0}' and of_kinds <> '{0}'
    union all
    select e.* from unnest(of_actors) as key (actor)
      cross join lateral (
        select one.* from change_entry one
          where one.tenant = of_tenant and one.actor = key.actor and one.at >= since
            and (of_kinds = '{}' or one.kind = any (of_kinds))
          order by one.at desc, one.sequence desc limit skip + size
      ) as e
      where of_actors <> '{0}'
    union all
    select e.* from (
        select one.* from change_entry one
          where one.tenant = of_tenant and one.at >= since
          order by one.at desc, one.sequence desc limit skip + size
      ) as e
      where of_actors = '{0}' and of_kinds = '{0}'
  ) as newest
  order by newest.at desc, newest.sequence desc offset skip limit size
$$;

-- The usual question in one statement: a page near the newest of one selection from a time on. `tallied` are
-- the kinds of its tallies, as in change_selections. Of more than one key the newest entries are looked for only as far back
-- as twice as many would be, were they spread evenly: a page may come with too few entries for its total, and is then
-- to be asked of change_read. Otherwise the two answer alike.
-- What it has found may be used again: `folded` is how many of the entries at or after the next whole minute the tallies
-- hold as of so many `folds`; null where the rest of the minute has too many entries to be counted one by one each time.
create function change_read_near(of_tenant text, now bigint, window_start bigint, of_actors bigint[], of_kinds bigint[],
                                 tallied bigint[], skip bigint, size bigint, names_since xid8, recent bigint,
                                 lineage text)
returns table (total bigint, current boolean, folded bigint, minute bigint, folds bigint, at bigint, kind bigint, actor bigint, entity_id text, name text,
               schema_version text, related text, paths text)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin
  return query
  with edge as materialized (
    select greatest(window_start, (select max(greatest(r.horizon, (now / 86400000 - r.keep_days) * 86400000))
                                     from change_retention r where r.tenant = of_tenant)) as since
  ), ahead as materialized (
    select edge.since, (edge.since + 59999) / 60000 * 60000 as minute from edge
  ), begun as materialized (
    select count(*) as entries,
           count(*) filter (where (of_actors = '{0}' or e.actor = any (of_actors))
                              and (of_kinds in ('{}', '{0}') or e.kind = any (of_kinds))) as matching
      from ahead
      cross join lateral (
        select one.kind, one.actor from change_entry one
          where one.tenant = of_tenant and one.at >= ahead.since and one.at < ahead.minute limit 1001
      ) as e
  ), pending as materialized (
    select one.at, one.kind, one.actor
      from change_delta d
      cross join lateral unnest(d.ats, d.kinds, d.actors) as one (at, kind, actor)
      where d.tenant = of_tenant and one.at >= (select edge.since from edge)
        and (of_actors = '{0}' or one.actor = any (of_actors)) and (of_kinds in ('{}', '{0}') or one.kind = any (of_kinds))
  ), node as materialized (
    select t.actor, t.kind, cell.depth, cell.before, cell.whole,
           t.upto[cardinality(t.upto)] - coalesce(t.upto[child.i], 0) as after,
           case when t.children[child.i] = cell.child then t.upto[child.i] - coalesce(t.upto[child.i - 1], 0) else 0 end as inside
      from edge
      cross join lateral change_cells(edge.since) as cell
      cross join lateral (
        select one.actor, one.kind, one.children, one.upto from change_tally one
          where one.tenant = of_tenant and one.level = cell.depth and one.bucket = cell.bucket
            and one.actor = any (of_actors) and one.kind = any (tallied)
          offset 0
      ) as t
      cross join lateral (select width_bucket(cell.child, t.children) as i) as child
  ), direct as materialized (
    select node.actor, node.kind, node.before from node
      where (node.actor = 0 or node.kind = 0) and not node.whole and node.inside > 0
        and (node.inside < change_dense() or node.depth = 4)
  ), counted as materialized (
    select (coalesce((select sum(case when node.whole then node.after + node.inside else node.after end) from node
                        where node.actor = 0 or node.kind > 0 or of_kinds = '{}'), 0)
            + coalesce((select sum(t.upto[cardinality(t.upto)]) from change_tally t
                          where t.tenant = of_tenant and t.level = 0
                            and t.bucket > (select edge.since / change_cell(0) from edge)
                            and t.actor = any (of_actors) and t.kind = any (tallied)
                            and (t.actor = 0 or t.kind > 0 or of_kinds = '{}')), 0)
            + (select count(*) from direct cross join edge
                 cross join lateral (
                   select from change_entry one
                     where one.tenant = of_tenant and one.kind = direct.kind and one.at >= edge.since and one.at < direct.before
                     offset 0
                 ) as e
                 where direct.kind > 0)
            + (select count(*) from direct cross join edge
                 cross join lateral (
                   select from change_entry one
                     where one.tenant = of_tenant and one.actor = direct.actor and one.at >= edge.since
                       and one.at < direct.before and (of_kinds = '{}' or one.kind = any (of_kinds))
                     offset 0
                 ) as e
                 where direct.actor > 0)
            + (select count(*) from direct cross join edge
                 cross join lateral (
                   select from change_entry one
                     where one.tenant = of_tenant and one.at >= edge.since and one.at < direct.before offset 0
                 ) as e
                 where direct.actor = 0 and direct.kind = 0)
            + (select count(*) from pending
                 left join direct on direct.actor in (0, pending.actor) and direct.kind in (0, pending.kind)
                 where direct.before is null or pending.at >= direct.before))::bigint as total
  )
  select counted.total,
         lineage = change_lineage() and (names_since is null or recent =
           (select count(*) from change_kind n where n.tenant = of_tenant and n.registered >= names_since)
           + (select count(*) from change_actor n where n.tenant = of_tenant and n.registered >= names_since)),
         case when begun.entries <= 1000 then
           counted.total - begun.matching - (select count(*) from pending where pending.at >= ahead.minute) end,
         ahead.minute, coalesce((select f.folds from change_folded f where f.tenant = of_tenant), 0),
         e.at, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
    from counted cross join begun cross join ahead
    cross join lateral (
      select case when cardinality(of_actors) = 1 and cardinality(of_kinds) <= 1 then edge.since
                  else greatest(edge.since, now - 1000 - 2 * (skip + size) * (now - edge.since) / greatest(counted.total, 1))
             end as since
        from edge
    ) as span
    left join lateral change_newest_from(of_tenant, of_actors, of_kinds, span.since, skip, size) as e on true
    order by e.at desc, e.sequence desc;
end
$$;

-- How many entries of a selection are in [since, minute), and how many at or after the minute wait to be folded.
create function change_matching(of_tenant text, of_actors bigint[], of_kinds bigint[], since bigint, minute bigint)
returns bigint language sql stable as $$
  select (select count(*) from change_entry one
            where one.tenant = of_tenant and one.at >= since and one.at < minute
              and (of_actors = '{0}' or one.actor = any (of_actors))
              and (of_kinds in ('{}', '{0}') or one.kind = any (of_kinds)))
         + (select count(*) from change_delta d
              cross join lateral unnest(d.ats, d.kinds, d.actors) as one (at, kind, actor)
              where d.tenant = of_tenant and one.at >= minute
                and (of_actors = '{0}' or one.actor = any (of_actors))
                and (of_kinds in ('{}', '{0}') or one.kind = any (of_kinds)))
$$;

-- The same where change_read_near has told before how many entries the tallies hold from a minute on. The total is null,
-- and nothing else is told, where they may hold others by now, where the window does not begin in the minute before, or
-- where the snapshot knows further names.
create function change_read_again(of_tenant text, now bigint, window_start bigint, of_actors bigint[], of_kinds bigint[],
                                  folded bigint, minute bigint, folds bigint, skip bigint, size bigint, names_since xid8,
                                  recent bigint, lineage text)
returns table (total bigint, at bigint, kind bigint, actor bigint, entity_id text, name text,
               schema_version text, related text, paths text)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin
  if of_actors = '{0}' and of_kinds = '{0}' and names_since is null then
    -- everything: the same with nothing to be tested
    return query
    select counted.total, e.at, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
      from (select) as always
      left join (
        select edge.since,
               change_read_again.folded
               + (select count(*) from change_entry one
                    where one.tenant = of_tenant and one.at >= edge.since and one.at < minute)
               + (select count(*) from change_delta d cross join lateral unnest(d.ats) as pending
                    where d.tenant = of_tenant and pending >= minute) as total
          from (
            select greatest(window_start, (select max(greatest(r.horizon, (now / 86400000 - r.keep_days) * 86400000))
                                             from change_retention r where r.tenant = of_tenant)) as since
          ) as edge
          where edge.since <= minute and edge.since > minute - 60000
            and change_read_again.folds = coalesce((select f.folds from change_folded f where f.tenant = of_tenant), 0)
            and lineage = change_lineage()
      ) as counted on true
      left join lateral (
        select one.* from change_entry one
          where one.tenant = of_tenant and one.at >= counted.since
          order by one.at desc, one.sequence desc offset skip limit size
      ) as e on true
      order by e.at desc, e.sequence desc;
    return;
  end if;
  return query
  with edge as materialized (
    select greatest(window_start, (select max(greatest(r.horizon, (now / 86400000 - r.keep_days) * 86400000))
                                     from change_retention r where r.tenant = of_tenant)) as since
  ), counted as materialized (
    select edge.since,
           change_read_again.folded + change_matching(of_tenant, of_actors, of_kinds, edge.since, minute) as total
      from edge
      where edge.since <= minute and edge.since > minute - 60000
        and change_read_again.folds = coalesce((select f.folds from change_folded f where f.tenant = of_tenant), 0)
        and lineage = change_lineage()
        and (names_since is null or recent =
          (select count(*) from change_kind n where n.tenant = of_tenant and n.registered >= names_since)
          + (select count(*) from change_actor n where n.tenant = of_tenant and n.registered >= names_since))
  )
  select counted.total, e.at, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
    from (select) as always
    left join counted on true
    cross join lateral (
      select case when cardinality(of_actors) = 1 and cardinality(of_kinds) <= 1 then counted.since
                  else greatest(counted.since, now - 1000 - 2 * (skip + size) * (now - counted.since) / greatest(counted.total, 1))
             end as since
    ) as span
    left join lateral change_newest_from(of_tenant, of_actors, of_kinds, span.since, skip, size) as e on true
    order by e.at desc, e.sequence desc;
end
$$;

-- A page with its entries, kinds and actors as numbers that the service has names for. The total stands in every row;
-- where the page is empty, in one that has nothing else. `current`: whether the snapshot knows no names besides those
-- that somebody read before, as many as `recent` registered by transactions from `names_since` on. Null: nobody did.
-- `folded`, `minute` and `folds` are what change_read_near told of the one selection that there is, or null.
create function change_read(of_tenant text, now bigint, sinces bigint[], befores bigint[], selection_ends integer[],
                            actor_sets text[], kind_sets text[], skip bigint, size bigint, names_since xid8, recent bigint,
                            lineage text, folded bigint, minute bigint, folds bigint)
returns table (total bigint, current boolean, at bigint, kind bigint, actor bigint, entity_id text, name text,
               schema_version text, related text, paths text)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  horizon bigint := coalesce((select max(greatest(r.horizon, (now / 86400000 - r.keep_days) * 86400000))
                                from change_retention r where r.tenant = of_tenant), 0);
  names_current boolean := lineage = change_lineage() and (names_since is null or recent =
    (select count(*) from change_kind n where n.tenant = of_tenant and n.registered >= names_since)
    + (select count(*) from change_actor n where n.tenant = of_tenant and n.registered >= names_since));
  known bigint;
begin
  if folded is not null and names_current then
    known := change_read.folded
      + change_matching(of_tenant, actor_sets[1]::bigint[], kind_sets[1]::bigint[], greatest(sinces[1], horizon), minute)
      from (select coalesce((select f.folds from change_folded f where f.tenant = of_tenant), 0) as folds) as now_folded
      where now_folded.folds = change_read.folds and greatest(sinces[1], horizon) between minute - 59999 and minute;
  end if;
  return query
    select page.total, names_current, e.at, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
      from change_page(of_tenant, now, horizon, sinces, befores, selection_ends, actor_sets, kind_sets, skip, size,
                       known) as page
      -- fenced: a plan from when the tables were small would go through all entries
      left join lateral (
        select one.* from change_entry one
          where one.tenant = of_tenant and one.at = page.at and one.sequence = page.sequence offset 0
      ) as e on true
      order by page.at desc nulls first, page.sequence desc;
end
$$;

-- The history of documents that are named one by one, or of what is related to such documents, in [since, before), as
-- change_read answers it. Null stands for any: kinds, actors, and the entity types of the related items.
create function change_read_documents(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[],
                                      actors bigint[], documents uuid[], related_documents uuid[], related_entities text[],
                                      skip bigint, size bigint, names_since xid8, recent bigint, lineage text)
returns table (total bigint, current boolean, at bigint, kind bigint, actor bigint, entity_id text, name text,
               schema_version text, related text, paths text)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  last_moment bigint := coalesce(before, 9223372036854775807);
  first_moment bigint := greatest(since, (select max(greatest(r.horizon, (now / 86400000 - r.keep_days) * 86400000))
                                            from change_retention r where r.tenant = of_tenant));
  names_current boolean := lineage = change_lineage() and recent =
    (select count(*) from change_kind n where n.tenant = of_tenant and n.registered >= names_since)
    + (select count(*) from change_actor n where n.tenant = of_tenant and n.registered >= names_since);
begin
  if related_documents is null and cardinality(documents) = 1 then
    -- the usual question, which an index answers alone
    return query
      select counted.total, names_current, e.at, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
        from (
          select count(*) as total from change_entry one
            where one.tenant = of_tenant and one.document = documents[1] and one.at >= first_moment and one.at < last_moment
              and (kinds is null or one.kind = any (kinds)) and (actors is null or one.actor = any (actors))
        ) as counted
        left join lateral (
          select one.* from change_entry one
            where one.tenant = of_tenant and one.document = documents[1] and one.at >= first_moment and one.at < last_moment
              and (kinds is null or one.kind = any (kinds)) and (actors is null or one.actor = any (actors))
            order by one.at desc, one.sequence desc offset skip limit size
        ) as e on true
        order by e.at desc, e.sequence desc;
    return;
  end if;
  return query
    with found as materialized (
      select e.at, e.sequence from change_entry e
        where e.tenant = of_tenant and e.document = any (documents) and e.at >= first_moment and e.at < last_moment
          and (kinds is null or e.kind = any (kinds)) and (actors is null or e.actor = any (actors))
      union all
      select place.at, place.sequence
        from (
          select distinct r.at, r.sequence from change_related r
            where r.tenant = of_tenant and r.document = any (related_documents) and r.at >= first_moment and r.at < last_moment
              and (related_entities is null or r.entity = any (related_entities))
        ) as place
        cross join lateral (
          select one.kind, one.actor from change_entry one
            where one.tenant = of_tenant and one.at = place.at and one.sequence = place.sequence offset 0
        ) as e
        where (kinds is null or e.kind = any (kinds)) and (actors is null or e.actor = any (actors))
    )
    select counted.total, names_current, e.at, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
      from (select count(*) as total from found) as counted
      left join lateral (
        select one.* from (select * from found order by at desc, sequence desc offset skip limit size) as place
          join change_entry one on one.tenant = of_tenant and one.at = place.at and one.sequence = place.sequence
      ) as e on true
      order by e.at desc, e.sequence desc;
end
$$;
