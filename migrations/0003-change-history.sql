-- The change history. docs/decisions/0003-history-storage.md tells why it is laid out like this.
-- Times are whole milliseconds since 1970-01-01T00:00:00Z.

-- What tallies can tell apart about a change besides its actor: entity type, operation, and the set of
-- entity types it is related to. Two recorders that meet a new kind at the same moment do not wait for each
-- other: each registers it under a number of its own, so `lookup` is not unique.
create table change_kind (
  tenant text collate "C" not null references tenant (tenant),
  kind bigint generated always as identity,
  lookup uuid not null,
  entity text collate "C" not null,
  type text collate "C" not null check (type in ('create', 'update', 'delete')),
  related_entities text[] collate "C" not null,
  registered xid8 not null default pg_current_xact_id(),
  primary key (tenant, kind)
);
create index change_kind_lookup on change_kind (tenant, lookup);
create index change_kind_registered on change_kind (tenant, registered);

create table change_actor (
  tenant text collate "C" not null references tenant (tenant),
  actor bigint generated always as identity,
  lookup uuid not null,
  name text collate "C" not null,
  registered xid8 not null default pg_current_xact_id(),
  primary key (tenant, actor)
);
create index change_actor_lookup on change_actor (tenant, lookup);
create index change_actor_registered on change_actor (tenant, registered);

-- One row a change, written once. `document` is a hash of entity_id, which may be too long for an index;
-- `identity` is what makes recording a change twice impossible. `related` and `paths` are JSON kept as the
-- text it came in: numbers must come back as they were written.
create table change_entry (
  tenant text collate "C" not null,
  at bigint not null,
  sequence bigint generated always as identity,
  kind bigint not null,
  actor bigint not null,
  document uuid not null,
  identity uuid not null,
  entity_id text collate "C" not null,
  name text collate "C",
  schema_version text collate "C",
  related text collate "C",
  paths text collate "C" not null,
  primary key (tenant, at, sequence)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
create unique index change_entry_identity on change_entry (tenant, at, identity);
create index change_entry_kind on change_entry (tenant, kind, at, sequence);
create index change_entry_actor on change_entry (tenant, actor, at, sequence) include (kind);
create index change_entry_document on change_entry (tenant, document, at, sequence) include (kind);

-- One row for each distinct related item of an entry, so that it can be asked for by item.
create table change_related (
  tenant text collate "C" not null,
  at bigint not null,
  sequence bigint not null,
  item integer not null,
  document uuid not null,
  entity text collate "C" not null,
  entity_id text collate "C" not null,
  primary key (tenant, at, sequence, item)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
create index change_related_document on change_related (tenant, document, at, sequence);

-- Entries that the tallies do not hold yet: one row a recording transaction, parallel arrays.
create table change_delta (
  tenant text collate "C" not null,
  delta bigint generated always as identity,
  ats bigint[] not null,
  kinds bigint[] not null,
  actors bigint[] not null,
  primary key (tenant, delta)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- How many entries a cell of time holds, for a key: a kind, an actor, both, or neither (0 stands for any).
-- Cells nest: 1,024 days, 32 days, a day, an hour, a minute (levels 0 to 4), and the row of a cell has running
-- totals over those of its children that are not empty: upto[i] counts the children up to children[i].
-- Level 0 is always there. A finer cell has its rows only where it is dense: where its kind, or its actor, or
-- for key (0, 0) the tenant, has at least change_dense() entries in it; a sparser one is counted from its entries.
create table change_tally (
  tenant text collate "C" not null,
  level smallint not null,
  actor bigint not null,
  kind bigint not null,
  bucket bigint not null,
  children smallint[] not null,
  upto bigint[] not null,
  primary key (tenant, level, actor, kind, bucket)
) with (fillfactor = 80);

-- What has been dropped, or is to be: nothing before `horizon`, nothing older than `keep_days` whole UTC days.
create table change_retention (
  tenant text collate "C" primary key references tenant (tenant),
  keep_days integer check (keep_days > 0),
  horizon bigint not null check (horizon % 86400000 = 0)
);

create function change_dense() returns bigint language sql immutable parallel safe as 'select 64::bigint';

-- What stands for a document id in an index: the first 16 bytes of the SHA-256 of its UTF-8.
create function change_document(entity_id text) returns uuid language sql immutable parallel safe as
  $$ select encode(substring(sha256(convert_to(entity_id, 'UTF8')) for 16), 'hex')::uuid $$;

-- The length of a cell of that level, in milliseconds; the children of level 4 are seconds.
create function change_cell(level integer) returns bigint language sql immutable parallel safe as
  'select (array[88473600000, 2764800000, 86400000, 3600000, 60000, 1000]::bigint[])[level + 1]';

-- The first moment, in milliseconds, whose history a tenant still has.
create function change_horizon(of_tenant text, now bigint) returns bigint language sql stable as $$
  select coalesce(max(greatest(horizon, (now / 86400000 - keep_days) * 86400000)), 0)
    from change_retention where tenant = of_tenant
$$;

-- What is asked for is a list of scans, each a range of some index, and no entry may belong to two of them: an actor
-- (0: any) and the place of a set of kinds in kind_sets, where each is written as an array. A set begins with the kind
-- whose tallies, with that actor, tell how dense the scan is:
--   actor 0, {k}         entries of kind k, by whomever; k 0: all entries
--   actor a, {0}         entries of actor a, of any kind
--   actor a, {0,k,l}     entries of actor a of the kinds k and l
-- Sets are texts, because to take one array out of an array of arrays copies the whole of it.
create function change_scans(kind_sets text[], actors bigint[], sets integer[])
returns table (actor bigint, set integer, kinds bigint[]) language sql stable as $$
  select s.actor, s.set, kind_sets[s.set]::bigint[] from unnest(actors, sets) s (actor, set) offset 0
$$;

-- The times of a scan's entries in [since, before), read from the entries themselves. Here and below, what is read for a
-- scan is fenced by "offset 0": each scan is a range of an index, and a plan from when the tables were small must not
-- go through all of what an import has brought since, once for each scan.
create function change_direct(of_tenant text, kind_sets text[], actors bigint[], sets integer[], since bigint, before bigint)
returns table (at bigint) language plpgsql stable as $$
begin
  if 0 < any (actors) then
    return query
      select e.at
        from change_scans(kind_sets, actors, sets) scan
        cross join lateral (
          select one.at from change_entry one
            where one.tenant = of_tenant and one.actor = scan.actor and one.at >= since and one.at < before
              and (scan.kinds[2] is null or one.kind = any (scan.kinds)) offset 0
        ) as e
        where scan.actor > 0;
  end if;
  if 0 = any (actors) then
    return query
      select e.at
        from change_scans(kind_sets, actors, sets) scan
        cross join lateral (
          select one.at from change_entry one
            where one.tenant = of_tenant and one.kind = scan.kinds[1] and one.at >= since and one.at < before offset 0
        ) as e
        where scan.actor = 0 and scan.kinds[1] > 0;
    if exists (select from change_scans(kind_sets, actors, sets) scan where scan.actor = 0 and scan.kinds[1] = 0) then
      return query select e.at from change_entry e where e.tenant = of_tenant and e.at >= since and e.at < before;
    end if;
  end if;
end
$$;

-- Which entries wait to be folded, with the scan each belongs to. Hashed, whatever the planner makes of lengths it cannot
-- know: while an import runs, entries times scans would be hundreds of millions of pairs.
create function change_pending(of_tenant text, kind_sets text[], of_actors bigint[], of_sets integer[])
returns table (at bigint, actor bigint, set integer) language plpgsql stable set enable_nestloop = off as $$
begin
  return query
    with pending as materialized (
      select one.at, one.kind, one.actor
        from change_delta d
        cross join lateral unnest(d.ats, d.kinds, d.actors) as one (at, kind, actor)
        where d.tenant = of_tenant
    ), scan as materialized (
      select s.actor, s.set, s.kinds, s.kinds[1] as kind from change_scans(kind_sets, of_actors, of_sets) s
    )
    select p.at, s.actor, s.set from pending p join scan s on s.kind = p.kind where s.actor = 0
    union all
    select p.at, s.actor, s.set from pending p cross join scan s where s.actor = 0 and s.kind = 0
    union all
    select p.at, s.actor, s.set
      from pending p join scan s on s.actor = p.actor
      where s.actor > 0 and (s.kinds[2] is null or p.kind = any (s.kinds));
end
$$;

-- How many entries at or after `since` the scans have. Descends through the cells that hold `since`; what is after
-- it in each is added up.
create function change_rank(of_tenant text, kind_sets text[], of_actors bigint[], of_sets integer[], since bigint)
returns bigint language plpgsql stable as $$
declare
  total bigint := 0;
  added bigint;
  actors bigint[] := of_actors;
  sets integer[] := of_sets;
  next_actors bigint[];
  next_sets integer[];
  sparse_actors bigint[];
  sparse_sets integer[];
  direct_actors bigint[] := '{}';
  direct_sets integer[] := '{}';
  direct_before bigint[] := '{}';
  cell bigint;
  child integer;
  whole boolean;
begin
  for depth in 0..4 loop
    cell := since / change_cell(depth);
    child := (since % change_cell(depth)) / change_cell(depth + 1);
    whole := since % change_cell(depth + 1) = 0;
    -- seconds have no tallies of their own, and a child that is counted whole needs none
    select coalesce(sum(case when whole then read.after + read.inside else read.after end) filter (where read.counted), 0),
           array_agg(read.actor) filter (where read.measure and read.inside >= change_dense() and depth < 4),
           array_agg(read.set) filter (where read.measure and read.inside >= change_dense() and depth < 4),
           array_agg(read.actor) filter (where read.measure and read.inside > 0 and (read.inside < change_dense() or depth = 4)),
           array_agg(read.set) filter (where read.measure and read.inside > 0 and (read.inside < change_dense() or depth = 4))
      into added, next_actors, next_sets, sparse_actors, sparse_sets
      from (
        select scan.actor, scan.set,
               t.kind = scan.kinds[1] as measure,
               t.kind > 0 or scan.kinds[2] is null as counted,
               t.upto[cardinality(t.upto)] - case when t.bucket = cell then coalesce(t.upto[place.i], 0) else 0 end as after,
               case when t.bucket = cell and t.children[place.i] = child
                    then t.upto[place.i] - coalesce(t.upto[place.i - 1], 0) else 0 end as inside
          from change_scans(kind_sets, actors, sets) scan
          cross join lateral (
            select one.kind, one.bucket, one.children, one.upto from change_tally one
              where one.tenant = of_tenant and one.level = depth and one.actor = scan.actor and one.kind = any (scan.kinds)
                and one.bucket >= cell and one.bucket <= case when depth = 0 then 9223372036854775807 else cell end
              offset 0
          ) as t
          cross join lateral (select width_bucket(child::smallint, t.children) as i) as place
      ) as read;
    total := total + added;
    exit when whole;
    if sparse_actors is not null then
      select count(*) into added
        from change_direct(of_tenant, kind_sets, sparse_actors, sparse_sets, since,
                           (since / change_cell(depth + 1) + 1) * change_cell(depth + 1));
      total := total + added;
      direct_actors := direct_actors || sparse_actors;
      direct_sets := direct_sets || sparse_sets;
      direct_before := direct_before || array_fill((since / change_cell(depth + 1) + 1) * change_cell(depth + 1),
                                                   array[cardinality(sparse_actors)]);
    end if;
    exit when next_actors is null;
    actors := next_actors;
    sets := next_sets;
  end loop;

  if exists (select from change_delta d where d.tenant = of_tenant) then
    select count(*) into added
      from change_pending(of_tenant, kind_sets, of_actors, of_sets) as pending
      left join unnest(direct_actors, direct_sets, direct_before) direct (actor, set, before)
        on direct.actor = pending.actor and direct.set = pending.set
      where pending.at >= since and (direct.before is null or pending.at >= direct.before);
    total := total + added;
  end if;
  return total;
end
$$;

-- Where, counted from the newest, the entry stands that has `skip` newer ones: it is the one with `cell_skip`
-- newer ones before `cell_end`. There must be more than `skip` entries.
create function change_seek(of_tenant text, kind_sets text[], of_actors bigint[], of_sets integer[], skip bigint,
                            out cell_end bigint, out cell_skip bigint)
language plpgsql stable as $$
declare
  actors bigint[] := of_actors;
  sets integer[] := of_sets;
  next_actors bigint[];
  next_sets integer[];
  sparse_actors bigint[];
  sparse_sets integer[];
  direct_actors bigint[] := '{}';
  direct_sets integer[] := '{}';
  cell bigint;
  cell_start bigint := 0;
  ats bigint[];
  picked_child bigint;
  picked_entries bigint;
  picked_newer bigint;
  any_pending boolean := exists (select from change_delta d where d.tenant = of_tenant);
begin
  cell_skip := skip;
  -- first the cell of level 0 is chosen, and then of each cell the child
  for depth in -1..4 loop
    if any_pending or cardinality(direct_actors) > 0 then
      select histogram.child, histogram.entries, histogram.newer into picked_child, picked_entries, picked_newer
        from (
          select part.child, sum(part.entries) as entries,
                 sum(sum(part.entries)) over (order by part.child desc) - sum(part.entries) as newer
            from (
              select tallied.child, tallied.entries
                from change_histogram(of_tenant, kind_sets, actors, sets, depth, cell) as tallied
              union all
              select (direct.at - cell_start) / change_cell(depth + 1), 1
                from change_direct(of_tenant, kind_sets, direct_actors, direct_sets, cell_start,
                                   cell_start + change_cell(depth)) as direct
                where cardinality(direct_actors) > 0
              union all
              select (pending.at - cell_start) / change_cell(depth + 1), 1
                from change_pending(of_tenant, kind_sets, of_actors, of_sets) as pending
                where any_pending
                  and (depth = -1 or pending.at >= cell_start and pending.at < cell_start + change_cell(depth))
                  and not exists (
                    select from unnest(direct_actors, direct_sets) direct (actor, set)
                      where direct.actor = pending.actor and direct.set = pending.set)
            ) as part
            group by part.child
        ) as histogram
        where histogram.newer <= cell_skip
        order by histogram.child
        limit 1;
    else
      select histogram.child, histogram.entries, histogram.newer into picked_child, picked_entries, picked_newer
        from (
          select tallied.child, tallied.entries,
                 sum(tallied.entries) over (order by tallied.child desc) - tallied.entries as newer
            from change_histogram(of_tenant, kind_sets, actors, sets, depth, cell) as tallied
        ) as histogram
        where histogram.newer <= cell_skip
        order by histogram.child
        limit 1;
    end if;
    cell_skip := cell_skip - picked_newer;
    cell_start := cell_start + picked_child * change_cell(depth + 1);
    cell_end := cell_start + change_cell(depth + 1);
    exit when picked_entries <= change_dense() or depth = 4;
    if depth >= 0 then
      select array_agg(scan.actor) filter (where found.entries >= change_dense()),
             array_agg(scan.set) filter (where found.entries >= change_dense()),
             array_agg(scan.actor) filter (where found.entries < change_dense()),
             array_agg(scan.set) filter (where found.entries < change_dense())
        into next_actors, next_sets, sparse_actors, sparse_sets
        from change_scans(kind_sets, actors, sets) scan
        cross join lateral (
          select one.children, one.upto from change_tally one
            where one.tenant = of_tenant and one.level = depth and one.actor = scan.actor and one.kind = scan.kinds[1]
              and one.bucket = cell offset 0
        ) as t
        cross join lateral (select width_bucket(picked_child::smallint, t.children) as i) as place
        cross join lateral (select t.upto[place.i] - coalesce(t.upto[place.i - 1], 0) as entries) as found
        where t.children[place.i] = picked_child;
      actors := coalesce(next_actors, '{}');
      sets := coalesce(next_sets, '{}');
      if sparse_actors is not null then
        direct_actors := direct_actors || sparse_actors;
        direct_sets := direct_sets || sparse_sets;
      end if;
      if next_actors is null then
        -- no tally knows more: what is left of the cell is read at once
        ats := array(
          select direct.at from change_direct(of_tenant, kind_sets, direct_actors, direct_sets, cell_start, cell_end) as direct
          union all
          select pending.at from change_pending(of_tenant, kind_sets, of_actors, of_sets) as pending
            where any_pending and pending.at >= cell_start and pending.at < cell_end
              and not exists (
                select from unnest(direct_actors, direct_sets) direct (actor, set)
                  where direct.actor = pending.actor and direct.set = pending.set)
          order by 1 desc);
        cell_end := ats[cell_skip + 1] + 1;
        cell_skip := cell_skip + 1 - array_position(ats, ats[cell_skip + 1]);
        return;
      end if;
    end if;
    cell := cell_start / change_cell(depth + 1);
  end loop;
end
$$;

-- How many entries the tallies hold for the scans in each child of a cell; in each cell of level 0 for depth -1.
create function change_histogram(of_tenant text, kind_sets text[], actors bigint[], sets integer[], depth integer, cell bigint)
returns table (child bigint, entries bigint) language plpgsql stable as $$
begin
  if depth = -1 then
    return query
      select t.bucket, sum(t.upto[cardinality(t.upto)])::bigint
        from change_scans(kind_sets, actors, sets) scan
        cross join lateral (
          select one.kind, one.bucket, one.upto from change_tally one
            where one.tenant = of_tenant and one.level = 0 and one.actor = scan.actor and one.kind = any (scan.kinds) offset 0
        ) as t
        where t.kind > 0 or scan.kinds[2] is null
        group by t.bucket;
  else
    return query
      select node.child::bigint, sum(node.upto - coalesce(t.upto[node.i - 1], 0))::bigint
        from change_scans(kind_sets, actors, sets) scan
        cross join lateral (
          select one.kind, one.children, one.upto from change_tally one
            where one.tenant = of_tenant and one.level = depth and one.actor = scan.actor and one.kind = any (scan.kinds)
              and one.bucket = cell offset 0
        ) as t
        cross join lateral unnest(t.children, t.upto) with ordinality as node (child, upto, i)
        where t.kind > 0 or scan.kinds[2] is null
        group by node.child;
  end if;
end
$$;

-- Moves every delta that the transaction sees into the tallies and answers how many entries that were; null where
-- another fold of the tenant is at work. To be called alone in a transaction that is repeatable read: then the
-- entries it sees are just those that the tallies hold afterwards, so that a cell which has become dense can be
-- built from them.
create function change_fold(of_tenant text) returns bigint language plpgsql set plan_cache_mode = force_custom_plan set enable_mergejoin = off as $$
declare
  ats bigint[];
  kinds bigint[];
  actors bigint[];
  -- which cells an entry is still followed into: 0 the tenant's, 1 its kind's, 2 its actor's
  scans smallint[];
  folded bigint;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('change_fold ' || of_tenant, 0)) then
    return null;
  end if;
  with taken as (delete from change_delta d where d.tenant = of_tenant returning d.ats, d.kinds, d.actors)
  select array_agg(pending.at), array_agg(pending.kind), array_agg(pending.actor), array_agg(pending.scan), count(*) / 3
    into ats, kinds, actors, scans, folded
    from (
      select one.at, one.kind, one.actor, scan.scan
        from taken
        cross join lateral unnest(taken.ats, taken.kinds, taken.actors) as one (at, kind, actor)
        cross join (values (0::smallint), (1::smallint), (2::smallint)) as scan (scan)
    ) as pending;

  for depth in 0..4 loop
    exit when ats is null;
    with work as (
      select w.at, w.kind, w.actor, w.scan, w.at / change_cell(depth) as bucket,
             case when w.scan = 1 then w.kind else 0 end as scan_kind,
             case when w.scan = 2 then w.actor else 0 end as scan_actor
        from unnest(ats, kinds, actors, scans) as w (at, kind, actor, scan)
    ), touched as materialized (
      select distinct scan, scan_kind, scan_actor, bucket from work
    ), dense as materialized (
      select touched.*,
             depth = 0 or exists (
               select from change_tally t where t.tenant = of_tenant and t.level = depth and t.actor = touched.scan_actor
                  and t.kind = touched.scan_kind and t.bucket = touched.bucket) as known
        from touched
    ), source as materialized (
      select work.at, work.kind, work.actor, work.scan
        from work join dense using (scan, scan_kind, scan_actor, bucket) where dense.known
      union all
      -- fenced: each cell is a range of an index, whatever the planner makes of the number of cells
      select e.at, e.kind, e.actor, dense.scan
        from dense
        cross join lateral (
          select one.at, one.kind, one.actor from change_entry one
            where one.tenant = of_tenant and one.at >= dense.bucket * change_cell(depth)
              and one.at < (dense.bucket + 1) * change_cell(depth) offset 0
        ) as e
        where not dense.known and dense.scan = 0
      union all
      select e.at, e.kind, e.actor, dense.scan
        from dense
        cross join lateral (
          select one.at, one.kind, one.actor from change_entry one
            where one.tenant = of_tenant and one.kind = dense.scan_kind and one.at >= dense.bucket * change_cell(depth)
              and one.at < (dense.bucket + 1) * change_cell(depth) offset 0
        ) as e
        where not dense.known and dense.scan = 1
      union all
      select e.at, e.kind, e.actor, dense.scan
        from dense
        cross join lateral (
          select one.at, one.kind, one.actor from change_entry one
            where one.tenant = of_tenant and one.actor = dense.scan_actor and one.at >= dense.bucket * change_cell(depth)
              and one.at < (dense.bucket + 1) * change_cell(depth) offset 0
        ) as e
        where not dense.known and dense.scan = 2
    ), added as (
      select key.kind, key.actor, source.at / change_cell(depth) as bucket,
             (source.at % change_cell(depth)) / change_cell(depth + 1) as child, count(*) as entries
        from source
        cross join lateral (
          select case when source.scan = 1 then source.kind else 0 end, case when source.scan = 2 then source.actor else 0 end
          union all
          select source.kind, source.actor where source.scan = 2
        ) as key (kind, actor)
        group by 1, 2, 3, 4
    ), merged as materialized (
      select part.kind, part.actor, part.bucket, part.child, sum(part.entries) as entries
        from (
          select * from added
          union all
          select t.kind, t.actor, t.bucket, node.child, node.upto - coalesce(t.upto[node.i - 1], 0)
            from (select distinct kind, actor, bucket from added) as key
            join change_tally t on t.tenant = of_tenant and t.level = depth and t.actor = key.actor and t.kind = key.kind
             and t.bucket = key.bucket
            cross join lateral unnest(t.children, t.upto) with ordinality as node (child, upto, i)
        ) as part
        group by 1, 2, 3, 4
    ), written as (
      insert into change_tally as t (tenant, level, actor, kind, bucket, children, upto)
        select of_tenant, depth, running.actor, running.kind, running.bucket,
               array_agg(running.child::smallint order by running.child), array_agg(running.upto order by running.child)
          from (
            select merged.*, sum(entries) over (partition by kind, actor, bucket order by child)::bigint as upto from merged
          ) as running
          group by running.kind, running.actor, running.bucket
        on conflict (tenant, level, actor, kind, bucket)
          do update set children = excluded.children, upto = excluded.upto
    )
    select array_agg(source.at), array_agg(source.kind), array_agg(source.actor), array_agg(source.scan)
      into ats, kinds, actors, scans
      from source
      join merged on merged.kind = case when source.scan = 1 then source.kind else 0 end
       and merged.actor = case when source.scan = 2 then source.actor else 0 end
       and merged.bucket = source.at / change_cell(depth)
       and merged.child = (source.at % change_cell(depth)) / change_cell(depth + 1)
      where merged.entries >= change_dense();
  end loop;
  return coalesce(folded, 0);
end
$$;

-- The entries of the scans in [since, before), newest first and of one millisecond the latest recorded first,
-- without the first `skip`, `size` at most. `in_time` reads along the time and tests each entry, which is right
-- where matches are dense; otherwise the newest of each scan are merged.
create function change_newest(of_tenant text, kind_sets text[], actors bigint[], sets integer[], since bigint,
                              before bigint, skip bigint, size bigint, in_time boolean)
returns table (at bigint, sequence bigint) language plpgsql stable as $$
begin
  if actors = '{0}' and kind_sets[sets[1]] = '{0}' then
    return query
      select e.at, e.sequence from change_entry e
        where e.tenant = of_tenant and e.at >= since and e.at < before
        order by e.at desc, e.sequence desc offset skip limit size;
  elsif in_time then
    return query
      select e.at, e.sequence from change_entry e
        where e.tenant = of_tenant and e.at >= since and e.at < before
          and (e.kind in (select scan.kinds[1] from change_scans(kind_sets, actors, sets) scan where scan.actor = 0)
               or e.actor in (select scan.actor from change_scans(kind_sets, actors, sets) scan
                               where scan.actor > 0 and scan.kinds[2] is null)
               or (e.kind, e.actor) in (select kind, scan.actor
                                          from change_scans(kind_sets, actors, sets) scan,
                                               unnest(scan.kinds) as kind
                                         where scan.actor > 0 and kind > 0))
        order by e.at desc, e.sequence desc offset skip limit size;
  else
    return query
      select newest.at, newest.sequence
        from (
          select e.at, e.sequence
            from change_scans(kind_sets, actors, sets) scan
            cross join lateral (
              select one.at, one.sequence from change_entry one
                where one.tenant = of_tenant and one.kind = scan.kinds[1] and one.at >= since and one.at < before
                order by one.at desc, one.sequence desc limit skip + size
            ) as e
            where scan.actor = 0
          union all
          select e.at, e.sequence
            from change_scans(kind_sets, actors, sets) scan
            cross join lateral (
              select one.at, one.sequence from change_entry one
                where one.tenant = of_tenant and one.actor = scan.actor and one.at >= since and one.at < before
                order by one.at desc, one.sequence desc limit skip + size
            ) as e
            where scan.actor > 0 and scan.kinds[2] is null
          union all
          select e.at, e.sequence
            from change_scans(kind_sets, actors, sets) scan
            cross join lateral (
              select one.at, one.sequence from change_entry one
                where one.tenant = of_tenant and one.actor = scan.actor and one.kind = any (scan.kinds)
                  and one.at >= since and one.at < before
                order by one.at desc, one.sequence desc limit skip + size
            ) as e
            where scan.actor > 0 and scan.kinds[2] is not null
        ) as newest
        order by newest.at desc, newest.sequence desc offset skip limit size;
  end if;
end
$$;

-- A page over intervals of time, newest first, each with scans of its own: those from scan_ends[i - 1] + 1 to
-- scan_ends[i]. An interval is [sinces[i], befores[i]); an infinite one ends at null. The first row has the total
-- alone; the others have the entries of the page. All is read in the snapshot of the calling statement.
create function change_page(of_tenant text, horizon bigint, sinces bigint[], befores bigint[], scan_ends integer[],
                            kind_sets text[], actors bigint[], sets integer[], skip bigint, size bigint)
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
  some_actors bigint[];
  some_sets integer[];
  start record;
  in_time boolean;
begin
  total := 0;
  for i in 1..cardinality(sinces) loop
    some_actors := actors[coalesce(scan_ends[i - 1], 0) + 1:scan_ends[i]];
    some_sets := sets[coalesce(scan_ends[i - 1], 0) + 1:scan_ends[i]];
    sinces[i] := greatest(sinces[i], horizon);
    before_counts[i] := 0;
    counts[i] := 0;
    continue when befores[i] <= sinces[i];
    if befores[i] is not null then
      before_counts[i] := change_rank(of_tenant, kind_sets, some_actors, some_sets, befores[i]);
    end if;
    counts[i] := change_rank(of_tenant, kind_sets, some_actors, some_sets, sinces[i]) - before_counts[i];
    total := total + counts[i];
  end loop;
  return next;
  if size = 0 then
    return;
  end if;

  for i in 1..cardinality(sinces) loop
    left_out := greatest(skip - newer, 0);
    if counts[i] > left_out then
      some_actors := actors[coalesce(scan_ends[i - 1], 0) + 1:scan_ends[i]];
      some_sets := sets[coalesce(scan_ends[i - 1], 0) + 1:scan_ends[i]];
      select coalesce(befores[i], 9223372036854775807) as cell_end, left_out as cell_skip into start;
      if left_out > change_dense() then
        select * into start from change_seek(of_tenant, kind_sets, some_actors, some_sets, before_counts[i] + left_out);
        if start.cell_end > befores[i] then
          select befores[i] as cell_end, left_out as cell_skip into start;
        end if;
      end if;
      in_time := false;
      if cardinality(some_actors) > 2 then
        -- whichever reads fewer entries, were matches spread evenly; to go to another range of an index counts as two
        in_time := (start.cell_skip + size - taken)
                     * (change_rank(of_tenant, '{"{0}"}', '{0}', '{1}', sinces[i])
                        - case when befores[i] is null then 0
                               else change_rank(of_tenant, '{"{0}"}', '{0}', '{1}', befores[i]) end)
                   < least(cardinality(some_actors) * (start.cell_skip + size - taken),
                           counts[i] + 2 * cardinality(some_actors)) * counts[i];
      end if;
      return query
        select total, newest.at, newest.sequence
          from change_newest(of_tenant, kind_sets, some_actors, some_sets, sinces[i], start.cell_end, start.cell_skip,
                             size - taken, in_time) as newest;
      get diagnostics added = row_count;
      taken := taken + added;
      exit when taken >= size;
    end if;
    newer := newer + counts[i];
  end loop;
end
$$;

-- A page with its entries as they are shown, and whether the snapshot knows no names besides those that somebody
-- read before: as many as `recent` were registered by transactions from `names_since` on. Null: nobody did.
create function change_read(of_tenant text, now bigint, sinces bigint[], befores bigint[], scan_ends integer[],
                            kind_sets text[], actors bigint[], sets integer[], skip bigint, size bigint,
                            names_since xid8, recent bigint)
returns table (total bigint, current boolean, at bigint, type text, entity text, entity_id text, name text,
               schema_version text, actor text, related text, paths text)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  names_current boolean := names_since is null or recent =
    (select count(*) from change_kind n where n.tenant = of_tenant and n.registered >= names_since)
    + (select count(*) from change_actor n where n.tenant = of_tenant and n.registered >= names_since);
begin
  return query
    select page.total, names_current, e.at, k.type, k.entity, e.entity_id, e.name, e.schema_version, a.name, e.related, e.paths
      from change_page(of_tenant, change_horizon(of_tenant, now), sinces, befores, scan_ends, kind_sets, actors, sets,
                       skip, size) as page
      -- fenced: a plan from when the tables were small would join all entries to their names first
      left join lateral (
        select one.* from change_entry one
          where one.tenant = of_tenant and one.at = page.at and one.sequence = page.sequence offset 0
      ) as e on true
      left join lateral (
        select one.type, one.entity from change_kind one where one.tenant = of_tenant and one.kind = e.kind offset 0
      ) as k on true
      left join lateral (
        select one.name from change_actor one where one.tenant = of_tenant and one.actor = e.actor offset 0
      ) as a on true
      order by page.at desc nulls first, page.sequence desc;
end
$$;

-- The history of documents that are named one by one, or of what is related to such documents, in [since, before), as
-- change_read answers it. Null stands for any: kinds, actors, and the entity types of the related items.
create function change_read_documents(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[],
                                      actors bigint[], documents uuid[], related_documents uuid[], related_entities text[],
                                      skip bigint, size bigint, names_since xid8, recent bigint)
returns table (total bigint, current boolean, at bigint, type text, entity text, entity_id text, name text,
               schema_version text, actor text, related text, paths text)
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
  ats bigint[];
  sequences bigint[];
  last_moment bigint := coalesce(before, 9223372036854775807);
begin
  since := greatest(since, change_horizon(of_tenant, now));
  current := recent = (select count(*) from change_kind n where n.tenant = of_tenant and n.registered >= names_since)
                      + (select count(*) from change_actor n where n.tenant = of_tenant and n.registered >= names_since);
  if related_documents is not null then
    select count(*),
           (array_agg(found.at order by found.at desc, found.sequence desc))[skip + 1:skip + size],
           (array_agg(found.sequence order by found.at desc, found.sequence desc))[skip + 1:skip + size]
      into total, ats, sequences
      from (
        select distinct r.at, r.sequence from change_related r
          where r.tenant = of_tenant and r.document = any (related_documents) and r.at >= since and r.at < last_moment
            and (related_entities is null or r.entity = any (related_entities))
      ) as found
      join change_entry e on e.tenant = of_tenant and e.at = found.at and e.sequence = found.sequence
      where (kinds is null or e.kind = any (kinds)) and (actors is null or e.actor = any (actors));
  elsif cardinality(documents) > 1 or actors is not null then
    select count(*),
           (array_agg(e.at order by e.at desc, e.sequence desc))[skip + 1:skip + size],
           (array_agg(e.sequence order by e.at desc, e.sequence desc))[skip + 1:skip + size]
      into total, ats, sequences
      from change_entry e
      where e.tenant = of_tenant and e.document = any (documents) and e.at >= since and e.at < last_moment
        and (kinds is null or e.kind = any (kinds)) and (actors is null or e.actor = any (actors));
  else
    -- the usual question, which an index answers alone
    select count(*) into total from change_entry e
      where e.tenant = of_tenant and e.document = documents[1] and e.at >= since and e.at < last_moment
        and (kinds is null or e.kind = any (kinds));
    select array_agg(newest.at), array_agg(newest.sequence) into ats, sequences
      from (
        select e.at, e.sequence from change_entry e
          where e.tenant = of_tenant and e.document = documents[1] and e.at >= since and e.at < last_moment
            and (kinds is null or e.kind = any (kinds))
          order by e.at desc, e.sequence desc offset skip limit size
      ) as newest;
  end if;
  return next;
  return query
    select total, current, e.at, k.type, k.entity, e.entity_id, e.name, e.schema_version, a.name, e.related, e.paths
      from unnest(ats, sequences) with ordinality as place (at, sequence, ordinal)
      join change_entry e on e.tenant = of_tenant and e.at = place.at and e.sequence = place.sequence
      join change_kind k on k.tenant = e.tenant and k.kind = e.kind
      join change_actor a on a.tenant = e.tenant and a.actor = e.actor
      order by place.ordinal;
end
$$;

-- The usual question, a page near the newest of a window without any filter, in one statement: change_read with the scan
-- of all entries, unrolled. Kinds and actors are numbers here, which the service has names for. The total stands in every
-- row; where the page is empty, in one that has nothing else.
create function change_read_window(of_tenant text, now bigint, window_start bigint, skip bigint, size bigint)
returns table (total bigint, at bigint, kind bigint, actor bigint, entity_id text, name text, schema_version text,
               related text, paths text)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin
  return query
  with edge as materialized (
    -- change_horizon, written out: to call it would take as long as all the rest
    select greatest(window_start, (select max(greatest(r.horizon, (now / 86400000 - r.keep_days) * 86400000))
                                     from change_retention r where r.tenant = of_tenant)) as since
  ), node as materialized (
    select level.depth, change_cell(level.depth + 1) as part,
           t.upto[cardinality(t.upto)] - coalesce(t.upto[place.i], 0) as after
      from edge
      cross join (values (0), (1), (2), (3), (4)) as level (depth)
      join change_tally t on t.tenant = of_tenant and t.level = level.depth and t.actor = 0 and t.kind = 0
       and t.bucket = edge.since / change_cell(level.depth)
      cross join lateral (
        select width_bucket(((edge.since % change_cell(level.depth)) / change_cell(level.depth + 1))::smallint, t.children) as i
      ) as place
  ), counted as materialized (
    -- the child of the finest cell is counted from its entries, up to here; nothing is where there is no cell at all
    select coalesce((edge.since / finest.part + 1) * finest.part, edge.since) as before
      from edge left join (select part from node order by depth desc limit 1) as finest on true
  ), whole as (
    select (select coalesce(sum(after), 0) from node)
           + (select coalesce(sum(t.upto[cardinality(t.upto)]), 0)
                from edge
                join change_tally t on t.tenant = of_tenant and t.level = 0 and t.actor = 0 and t.kind = 0
                 and t.bucket > edge.since / change_cell(0))
           + (select count(*) from edge, counted, change_entry e
                where e.tenant = of_tenant and e.at >= edge.since and e.at < counted.before)
           + (select count(*) from counted, change_delta d, unnest(d.ats) as pending
                where d.tenant = of_tenant and pending >= counted.before) as total
  )
  select whole.total::bigint, e.at, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
    from whole
    left join lateral (
      select one.* from edge, change_entry one
        where one.tenant = of_tenant and one.at >= edge.since
        order by one.at desc, one.sequence desc offset skip limit size
    ) as e on true
    order by e.at desc, e.sequence desc;
end
$$;
