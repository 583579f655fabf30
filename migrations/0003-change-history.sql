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
  if folded > 0 then
    insert into change_folded as so_far (tenant, folds) values (of_tenant, 1)
      on conflict (tenant) do update set folds = so_far.folds + 1;
  end if;
  return coalesce(folded, 0);
end
$$;
