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

-- How many entries in [since, before) the keys have, read from the entries themselves.
create function change_direct_count(of_tenant text, kinds bigint[], actors bigint[], since bigint, before bigint)
returns bigint language plpgsql stable as $$
declare
  counted bigint;
  total bigint := 0;
begin
  if exists (select from unnest(kinds, actors) key (kind, actor) where key.kind = 0 and key.actor = 0) then
    select count(*) into total from change_entry e
      where e.tenant = of_tenant and e.at >= since and e.at < before;
  end if;
  if exists (select from unnest(kinds, actors) key (kind, actor) where key.kind > 0 and key.actor = 0) then
    select count(*) into counted from unnest(kinds, actors) key (kind, actor)
      join change_entry e on e.tenant = of_tenant and e.kind = key.kind and e.at >= since and e.at < before
      where key.kind > 0 and key.actor = 0;
    total := total + counted;
  end if;
  if exists (select from unnest(actors) key (actor) where key.actor > 0) then
    select coalesce(sum(found.entries), 0) into counted
      from (
        select key.actor, array_agg(key.kind) as kinds, bool_or(key.kind = 0) as any_kind
          from unnest(kinds, actors) key (kind, actor) where key.actor > 0 group by key.actor
      ) as wanted
      cross join lateral (
        select count(*) as entries from change_entry e
          where e.tenant = of_tenant and e.actor = wanted.actor and e.at >= since and e.at < before
            and (wanted.any_kind or e.kind = any (wanted.kinds))
      ) as found;
    total := total + counted;
  end if;
  return total;
end
$$;

-- How many entries at or after `since` the keys have. Keys are pairs (kind, actor), 0 for any, and no entry
-- may belong to two of them. Descends through the cells that hold `since`; what is after it in each is added up.
create function change_rank(of_tenant text, of_kinds bigint[], of_actors bigint[], since bigint)
returns bigint language plpgsql stable as $$
declare
  total bigint;
  added bigint;
  kinds bigint[] := of_kinds;
  actors bigint[] := of_actors;
  next_kinds bigint[];
  next_actors bigint[];
  sparse_kinds bigint[];
  sparse_actors bigint[];
  direct_kinds bigint[] := '{}';
  direct_actors bigint[] := '{}';
  direct_before bigint[] := '{}';
  cell bigint;
  child integer;
  whole boolean;
begin
  select coalesce(sum(t.upto[cardinality(t.upto)]), 0) into total
    from unnest(of_kinds, of_actors) key (kind, actor)
    join change_tally t on t.tenant = of_tenant and t.level = 0 and t.actor = key.actor and t.kind = key.kind
     and t.bucket > since / change_cell(0);

  for depth in 0..4 loop
    cell := since / change_cell(depth);
    child := (since % change_cell(depth)) / change_cell(depth + 1);
    whole := since % change_cell(depth + 1) = 0;
    select coalesce(sum(read.after + case when whole then read.inside else 0 end), 0),
           array_agg(read.kind) filter (where read.inside > 0),
           array_agg(read.actor) filter (where read.inside > 0),
           array_agg(read.kind) filter (where read.inside is null),
           array_agg(read.actor) filter (where read.inside is null)
      into added, next_kinds, next_actors, sparse_kinds, sparse_actors
      from (
        select key.kind, key.actor,
               t.upto[cardinality(t.upto)] - coalesce(t.upto[place.i], 0) as after,
               case when t.children is null then null
                    when t.children[place.i] = child then t.upto[place.i] - coalesce(t.upto[place.i - 1], 0)
                    else 0 end as inside
          from unnest(kinds, actors) key (kind, actor)
          left join change_tally t on t.tenant = of_tenant and t.level = depth and t.actor = key.actor
           and t.kind = key.kind and t.bucket = cell
          cross join lateral (select width_bucket(child::smallint, t.children) as i) as place
      ) as read;
    total := total + added;
    if depth > 0 and sparse_kinds is not null then
      total := total + change_direct_count(of_tenant, sparse_kinds, sparse_actors, since, (cell + 1) * change_cell(depth));
      direct_kinds := direct_kinds || sparse_kinds;
      direct_actors := direct_actors || sparse_actors;
      direct_before := direct_before || array_fill((cell + 1) * change_cell(depth), array[cardinality(sparse_kinds)]);
    end if;
    kinds := next_kinds;
    actors := next_actors;
    exit when whole or kinds is null;
    if depth = 4 then
      total := total + change_direct_count(of_tenant, kinds, actors, since, (since / 1000 + 1) * 1000);
      direct_kinds := direct_kinds || kinds;
      direct_actors := direct_actors || actors;
      direct_before := direct_before || array_fill((since / 1000 + 1) * 1000, array[cardinality(kinds)]);
    end if;
  end loop;

  if exists (select from change_delta d where d.tenant = of_tenant) then
    select count(*) into added
      from change_delta d
      cross join lateral unnest(d.ats, d.kinds, d.actors) as pending (at, kind, actor)
      cross join lateral (values (0::bigint, 0::bigint), (pending.kind, 0), (0, pending.actor), (pending.kind, pending.actor))
        as seen (kind, actor)
      join unnest(of_kinds, of_actors) key (kind, actor) on key.kind = seen.kind and key.actor = seen.actor
      left join unnest(direct_kinds, direct_actors, direct_before) direct (kind, actor, before)
        on direct.kind = key.kind and direct.actor = key.actor
      where d.tenant = of_tenant and pending.at >= since and (direct.before is null or pending.at >= direct.before);
    total := total + added;
  end if;
  return total;
end
$$;

-- Where, counted from the newest, the entry stands that has `skip` newer ones: it is the one with `cell_skip`
-- newer ones before `cell_end`. There must be more than `skip` entries. Keys as for change_rank.
create function change_seek(of_tenant text, of_kinds bigint[], of_actors bigint[], skip bigint,
                            out cell_end bigint, out cell_skip bigint)
language plpgsql stable as $$
declare
  kinds bigint[] := of_kinds;
  actors bigint[] := of_actors;
  next_kinds bigint[];
  next_actors bigint[];
  sparse_kinds bigint[];
  sparse_actors bigint[];
  direct_kinds bigint[] := '{}';
  direct_actors bigint[] := '{}';
  cell bigint;
  cell_start bigint;
  found record;
  any_pending boolean := exists (select from change_delta d where d.tenant = of_tenant);
begin
  cell_skip := skip;
  -- depth -1 chooses the cell of level 0; each further turn chooses a child of the cell chosen before
  for depth in -1..4 loop
    if depth >= 1 then
      select array_agg(key.kind), array_agg(key.actor) into sparse_kinds, sparse_actors
        from unnest(kinds, actors) key (kind, actor)
        where not exists (
          select from change_tally t where t.tenant = of_tenant and t.level = depth and t.actor = key.actor
             and t.kind = key.kind and t.bucket = cell);
      if sparse_kinds is not null then
        direct_kinds := direct_kinds || sparse_kinds;
        direct_actors := direct_actors || sparse_actors;
      end if;
    end if;
    select histogram.child, histogram.entries, histogram.newer into found
      from (
        select part.child, sum(part.entries) as entries,
               sum(sum(part.entries)) over (order by part.child desc) - sum(part.entries) as newer
          from (
            select t.bucket as child, t.upto[cardinality(t.upto)] as entries
              from unnest(kinds, actors) key (kind, actor)
              join change_tally t on t.tenant = of_tenant and t.level = 0 and t.actor = key.actor and t.kind = key.kind
              where depth = -1
            union all
            select node.child, node.upto - coalesce(t.upto[node.i - 1], 0)
              from unnest(kinds, actors) key (kind, actor)
              join change_tally t on t.tenant = of_tenant and t.level = depth and t.actor = key.actor
               and t.kind = key.kind and t.bucket = cell
              cross join lateral unnest(t.children, t.upto) with ordinality as node (child, upto, i)
              where depth >= 0
            union all
            select (d.at - cell_start) / change_cell(depth + 1), 1
              from change_direct_entries(of_tenant, direct_kinds, direct_actors, cell_start,
                                         cell_start + change_cell(depth)) as d
              where depth >= 1 and cardinality(direct_kinds) > 0
            union all
            select (pending.at - coalesce(cell_start, 0)) / change_cell(depth + 1), 1
              from change_delta d
              cross join lateral unnest(d.ats, d.kinds, d.actors) as pending (at, kind, actor)
              cross join lateral (values (0::bigint, 0::bigint), (pending.kind, 0), (0, pending.actor), (pending.kind, pending.actor))
                as seen (kind, actor)
              join unnest(of_kinds, of_actors) key (kind, actor) on key.kind = seen.kind and key.actor = seen.actor
              where any_pending and d.tenant = of_tenant
                and (depth = -1 or pending.at >= cell_start and pending.at < cell_start + change_cell(depth))
                and not exists (
                  select from unnest(direct_kinds, direct_actors) direct (kind, actor)
                    where direct.kind = key.kind and direct.actor = key.actor)
          ) as part
          group by part.child
      ) as histogram
      where histogram.newer <= cell_skip
      order by histogram.child
      limit 1;
    cell_skip := cell_skip - found.newer;
    cell_start := coalesce(cell_start, 0) + found.child * change_cell(depth + 1);
    cell_end := cell_start + change_cell(depth + 1);
    exit when found.entries <= change_dense() or depth = 4;
    if depth >= 0 then
      select array_agg(key.kind), array_agg(key.actor) into next_kinds, next_actors
        from unnest(kinds, actors) key (kind, actor)
        join change_tally t on t.tenant = of_tenant and t.level = depth and t.actor = key.actor
         and t.kind = key.kind and t.bucket = cell
        where t.children[width_bucket(found.child::smallint, t.children)] = found.child;
      kinds := coalesce(next_kinds, '{}');
      actors := coalesce(next_actors, '{}');
    end if;
    cell := cell_start / change_cell(depth + 1);
  end loop;
end
$$;

-- The times of the entries in [since, before) that the keys have, from the entries themselves.
create function change_direct_entries(of_tenant text, kinds bigint[], actors bigint[], since bigint, before bigint)
returns table (at bigint) language plpgsql stable as $$
begin
  if exists (select from unnest(kinds, actors) key (kind, actor) where key.kind = 0 and key.actor = 0) then
    return query select e.at from change_entry e where e.tenant = of_tenant and e.at >= since and e.at < before;
  end if;
  if exists (select from unnest(kinds, actors) key (kind, actor) where key.kind > 0 and key.actor = 0) then
    return query select e.at from unnest(kinds, actors) key (kind, actor)
      join change_entry e on e.tenant = of_tenant and e.kind = key.kind and e.at >= since and e.at < before
      where key.kind > 0 and key.actor = 0;
  end if;
  if exists (select from unnest(actors) key (actor) where key.actor > 0) then
    return query
      select e.at
        from (
          select key.actor, array_agg(key.kind) as kinds, bool_or(key.kind = 0) as any_kind
            from unnest(kinds, actors) key (kind, actor) where key.actor > 0 group by key.actor
        ) as wanted
        join change_entry e on e.tenant = of_tenant and e.actor = wanted.actor and e.at >= since and e.at < before
         and (wanted.any_kind or e.kind = any (wanted.kinds));
  end if;
end
$$;

-- Moves every delta that the transaction sees into the tallies and answers how many entries that were; null where
-- another fold of the tenant is at work. To be called alone in a transaction that is repeatable read: then the
-- entries it sees are just those that the tallies hold afterwards, so that a cell which has become dense can be
-- built from them.
create function change_fold(of_tenant text) returns bigint language plpgsql as $$
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
    ), dense as (
      select touched.*,
             depth = 0 or exists (
               select from change_tally t where t.tenant = of_tenant and t.level = depth and t.actor = touched.scan_actor
                  and t.kind = touched.scan_kind and t.bucket = touched.bucket) as known
        from (select distinct scan, scan_kind, scan_actor, bucket from work) as touched
        where depth = 0 or change_child_count(of_tenant, depth - 1, touched.scan_kind, touched.scan_actor,
                                              touched.bucket * change_cell(depth)) >= change_dense()
    ), source as materialized (
      select work.at, work.kind, work.actor, work.scan
        from work join dense using (scan, scan_kind, scan_actor, bucket) where dense.known
      union all
      select e.at, e.kind, e.actor, dense.scan
        from dense join change_entry e on e.tenant = of_tenant and e.at >= dense.bucket * change_cell(depth)
         and e.at < (dense.bucket + 1) * change_cell(depth)
        where not dense.known and dense.scan = 0
      union all
      select e.at, e.kind, e.actor, dense.scan
        from dense join change_entry e on e.tenant = of_tenant and e.kind = dense.scan_kind
         and e.at >= dense.bucket * change_cell(depth) and e.at < (dense.bucket + 1) * change_cell(depth)
        where not dense.known and dense.scan = 1
      union all
      select e.at, e.kind, e.actor, dense.scan
        from dense join change_entry e on e.tenant = of_tenant and e.actor = dense.scan_actor
         and e.at >= dense.bucket * change_cell(depth) and e.at < (dense.bucket + 1) * change_cell(depth)
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
    ), merged as (
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
      from source;
  end loop;
  return coalesce(folded, 0);
end
$$;

-- How many entries the tallies hold for one key in the child, beginning at child_start, of a cell of that level.
create function change_child_count(of_tenant text, of_level integer, of_kind bigint, of_actor bigint, child_start bigint)
returns bigint language sql stable as $$
  select t.upto[place.i] - coalesce(t.upto[place.i - 1], 0)
    from change_tally t
    cross join lateral (
      select ((child_start % change_cell(of_level)) / change_cell(of_level + 1))::smallint as child
    ) as wanted
    cross join lateral (select width_bucket(wanted.child, t.children) as i) as place
    where t.tenant = of_tenant and t.level = of_level and t.actor = of_actor and t.kind = of_kind
      and t.bucket = child_start / change_cell(of_level) and t.children[place.i] = wanted.child
$$;

-- The entries that the keys have in [since, before), newest first and of one millisecond the latest recorded first,
-- without the first `skip`, `size` at most. `in_time` reads along the time and tests each entry, which is right
-- where matches are dense; otherwise the newest of each key are merged.
create function change_newest(of_tenant text, kinds bigint[], actors bigint[], since bigint, before bigint,
                              skip bigint, size bigint, in_time boolean)
returns table (at bigint, sequence bigint) language plpgsql stable as $$
begin
  if kinds = '{0}' and actors = '{0}' then
    return query
      select e.at, e.sequence from change_entry e
        where e.tenant = of_tenant and e.at >= since and e.at < before
        order by e.at desc, e.sequence desc offset skip limit size;
  elsif in_time then
    return query
      select e.at, e.sequence from change_entry e
        where e.tenant = of_tenant and e.at >= since and e.at < before
          and (e.kind in (select key.kind from unnest(kinds, actors) key (kind, actor) where key.actor = 0)
               or e.actor in (select key.actor from unnest(kinds, actors) key (kind, actor) where key.kind = 0)
               or (e.kind, e.actor) in (select key.kind, key.actor from unnest(kinds, actors) key (kind, actor)
                                         where key.kind > 0 and key.actor > 0))
        order by e.at desc, e.sequence desc offset skip limit size;
  else
    return query
      select newest.at, newest.sequence
        from (
          select e.at, e.sequence
            from unnest(kinds, actors) key (kind, actor)
            cross join lateral (
              select one.at, one.sequence from change_entry one
                where one.tenant = of_tenant and one.kind = key.kind and one.at >= since and one.at < before
                order by one.at desc, one.sequence desc limit skip + size
            ) as e
            where key.actor = 0
          union all
          select e.at, e.sequence
            from unnest(kinds, actors) key (kind, actor)
            cross join lateral (
              select one.at, one.sequence from change_entry one
                where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < before
                order by one.at desc, one.sequence desc limit skip + size
            ) as e
            where key.kind = 0
          union all
          select e.at, e.sequence
            from (
              select key.actor, array_agg(key.kind) as kinds
                from unnest(kinds, actors) key (kind, actor) where key.kind > 0 and key.actor > 0 group by key.actor
            ) as joint
            cross join lateral (
              select one.at, one.sequence from change_entry one
                where one.tenant = of_tenant and one.actor = joint.actor and one.kind = any (joint.kinds)
                  and one.at >= since and one.at < before
                order by one.at desc, one.sequence desc limit skip + size
            ) as e
        ) as newest
        order by newest.at desc, newest.sequence desc offset skip limit size;
  end if;
end
$$;

-- A page over intervals of time, newest first, each with keys of its own: those from key_ends[i - 1] + 1 to
-- key_ends[i]. An interval is [sinces[i], befores[i]); an infinite one ends at null. The first row has the total
-- alone; the others have the entries of the page. All is read in the snapshot of the calling statement.
create function change_page(of_tenant text, horizon bigint, sinces bigint[], befores bigint[], key_ends integer[],
                            kinds bigint[], actors bigint[], skip bigint, size bigint)
returns table (total bigint, at bigint, sequence bigint) language plpgsql stable as $$
declare
  counts bigint[] := '{}';
  before_counts bigint[] := '{}';
  newer bigint := 0;
  taken bigint := 0;
  added bigint;
  some_kinds bigint[];
  some_actors bigint[];
  scans bigint;
  start record;
  in_time boolean;
begin
  total := 0;
  for i in 1..cardinality(sinces) loop
    some_kinds := kinds[coalesce(key_ends[i - 1], 0) + 1:key_ends[i]];
    some_actors := actors[coalesce(key_ends[i - 1], 0) + 1:key_ends[i]];
    sinces[i] := greatest(sinces[i], horizon);
    if befores[i] is null then
      before_counts[i] := 0;
    elsif befores[i] <= sinces[i] then
      before_counts[i] := 0;
      counts[i] := 0;
      continue;
    else
      before_counts[i] := change_rank(of_tenant, some_kinds, some_actors, befores[i]);
    end if;
    counts[i] := change_rank(of_tenant, some_kinds, some_actors, sinces[i]) - before_counts[i];
    total := total + counts[i];
  end loop;
  return next;
  if size = 0 then
    return;
  end if;

  for i in 1..cardinality(sinces) loop
    if counts[i] > greatest(skip - newer, 0) then
      some_kinds := kinds[coalesce(key_ends[i - 1], 0) + 1:key_ends[i]];
      some_actors := actors[coalesce(key_ends[i - 1], 0) + 1:key_ends[i]];
      if before_counts[i] + greatest(skip - newer, 0) > change_dense() then
        select * into start
          from change_seek(of_tenant, some_kinds, some_actors, before_counts[i] + greatest(skip - newer, 0));
        if befores[i] is not null and start.cell_end > befores[i] then
          start.cell_end := befores[i];
          start.cell_skip := greatest(skip - newer, 0);
        end if;
      else
        select coalesce(befores[i], 9223372036854775807) as cell_end, greatest(skip - newer, 0) as cell_skip into start;
      end if;
      in_time := false;
      scans := change_scan_count(some_kinds, some_actors);
      if scans > 2 then
        in_time := (start.cell_skip + size - taken)
                     * (change_rank(of_tenant, '{0}', '{0}', sinces[i])
                        - case when befores[i] is null then 0 else change_rank(of_tenant, '{0}', '{0}', befores[i]) end)
                   < (scans * (start.cell_skip + size - taken + 2)) * counts[i];
      end if;
      return query
        select total, newest.at, newest.sequence
          from change_newest(of_tenant, some_kinds, some_actors, sinces[i], start.cell_end, start.cell_skip,
                             size - taken, in_time) as newest;
      get diagnostics added = row_count;
      taken := taken + added;
      exit when taken >= size;
    end if;
    newer := newer + counts[i];
  end loop;
end
$$;

-- How many index ranges hold the entries of the keys: one a kind, one an actor.
create function change_scan_count(kinds bigint[], actors bigint[]) returns bigint language sql immutable as $$
  select count(distinct case when key.actor > 0 then key.actor else -key.kind end)
    from unnest(kinds, actors) key (kind, actor)
$$;
