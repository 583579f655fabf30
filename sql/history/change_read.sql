-- A page over intervals of time, newest first, each with selections of its own (see change_rank): those from
-- selection_ends[i - 1] + 1 to selection_ends[i]. An interval is [sinces[i], befores[i]); an infinite one ends at null.
--
-- The first row has the total alone, the others the entries of the page, with kinds and actors as numbers that the service
-- has names for; `current` is that of change_snapshot. All is read in the snapshot of the calling statement.
create function change_read(of_tenant text, now bigint, sinces bigint[], befores bigint[], selection_ends integer[],
                            actor_sets text[], kind_sets text[], skip bigint, size bigint, names_since xid8, recent bigint,
                            lineage text)
returns table (total bigint, current boolean, at bigint, sequence bigint, kind bigint, actor bigint, entity_id text,
               name text, schema_version text, related text, paths text)
language plpgsql stable
-- planned once: its statements and those of what it calls are ranges of indexes whatever they are given, and to plan
-- them anew takes several times as long as to run them; a plan from when the tables were small must not go through
-- all of what an import has brought since; and where most entries share a moment, to sort what an index finds by
-- the time alone would read all of them for each row
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
set enable_sort = off set enable_incremental_sort = off as $$
declare
  horizon bigint;
  ranks bigint[];
  -- of each interval how many entries it has, and how many its selections have after it
  counts bigint[] := '{}';
  after bigint[] := '{}';
  first_selection integer := 1;
  some_actors text[] := actor_sets;
  some_kinds text[] := kind_sets;
  left_out bigint := skip;
  wanted bigint := size;
  checkpoint bigint;
  newer bigint;
  added bigint;
  -- those of the only selection
  actors constant bigint[] := case when cardinality(actor_sets) = 1 and cardinality(sinces) = 1 then actor_sets[1]::bigint[] end;
  kinds constant bigint[] := case when actors is not null then kind_sets[1]::bigint[] end;
  of_any_kind constant boolean := kinds = '{}';
  -- Tallies of some actors cost some 2 ms, of some actors and kinds much more.
  most_places constant bigint := case when of_any_kind then 2500 else 20000 end;
  -- To count 150 entries of an actor costs as much as its tallies.
  most_counted constant bigint := 150 * cardinality(actors);
  counted bigint;
  sampled bigint := 0;
  seen bigint;
  ats bigint[];
  sequences bigint[];
begin
  select s.horizon, s.current into horizon, current from change_snapshot(of_tenant, now, names_since, recent, lineage) s;
  if cardinality(actors) between 17 and 128 then
    -- a sample of the actors tells whether all have too many
    select count(*) into sampled
      from (
        select from unnest(actors[1:4]) as key (actor)
          cross join lateral (
            select from change_entry entry
              where entry.tenant = of_tenant and entry.actor = key.actor and entry.at >= greatest(sinces[1], horizon)
                and entry.at < coalesce(befores[1], 9223372036854775807)
              order by entry.at, entry.sequence offset 0
          ) as one
          limit most_places
      ) as e;
    if of_any_kind and (skip <= 400 or befores[1] is null) and sampled * cardinality(actors) / 4 between 2 * most_places and most_counted then
      select count(*) into counted
        from (
          select from unnest(actors) as key (actor)
            cross join lateral (
              select from change_entry entry
                where entry.tenant = of_tenant and entry.actor = key.actor and entry.at >= greatest(sinces[1], horizon)
                  and entry.at < coalesce(befores[1], 9223372036854775807)
                order by entry.at, entry.sequence offset 0
            ) as one
            limit 2 * most_counted
        ) as e;
      counted := nullif(counted, 2 * most_counted);
    end if;
  end if;
  if cardinality(actors) between 2 and 128 and counted is null and sampled * cardinality(actors) / 4 <= 2 * most_places then
    -- Some actors with few entries: to read all places once costs less than to count them by tallies and to look for the page.
    select count(*), array_agg(e.at) filter (where e.counts), array_agg(e.sequence) filter (where e.counts)
      into seen, ats, sequences
      from (
        select one.at, one.sequence, of_any_kind or one.kind = any (kinds) as counts
          from unnest(actors) as key (actor)
          cross join lateral (
            select entry.at, entry.sequence, entry.kind from change_entry entry
              where entry.tenant = of_tenant and entry.actor = key.actor and entry.at >= greatest(sinces[1], horizon)
                and entry.at < coalesce(befores[1], 9223372036854775807)
              order by entry.at, entry.sequence offset 0
          ) as one
          limit most_places + 1
      ) as e;
    if seen <= most_places then
      total := coalesce(cardinality(ats), 0);
      return next;
      return query
        select change_read.total, change_read.current, e.at, e.sequence, e.kind, e.actor, e.entity_id, e.name, e.schema_version,
               e.related, e.paths
          from (
            select p.at, p.sequence from unnest(ats, sequences) as p (at, sequence)
              order by p.at desc, p.sequence desc offset skip limit size
          ) as page
          cross join lateral (
            select one.* from change_entry one
              where one.tenant = of_tenant and (one.at, one.sequence) >= (page.at, page.sequence)
                and (one.at, one.sequence) <= (page.at, page.sequence)
              order by one.at, one.sequence limit 1
          ) as e;
      return;
    end if;
  end if;

  total := 0;
  for i in 1..cardinality(sinces) loop
    if cardinality(sinces) > 1 then
      some_actors := actor_sets[first_selection:selection_ends[i]];
      some_kinds := kind_sets[first_selection:selection_ends[i]];
      first_selection := selection_ends[i] + 1;
    end if;
    sinces[i] := greatest(sinces[i], horizon);
    counts[i] := 0;
    after[i] := 0;
    continue when befores[i] <= sinces[i];
    if counted is null then
      ranks := change_rank(of_tenant, some_actors, some_kinds,
                           case when befores[i] is null then array[sinces[i]] else array[sinces[i], befores[i]] end);
      after[i] := coalesce(ranks[2], 0);
      counts[i] := ranks[1] - after[i];
    else
      -- `after` is 0, or only for pages further back
      counts[i] := counted;
    end if;
    total := total + counts[i];
  end loop;
  return next;

  for i in 1..cardinality(sinces) loop
    exit when wanted = 0;
    if counts[i] <= left_out then
      left_out := left_out - counts[i];
      continue;
    end if;
    if cardinality(sinces) > 1 then
      some_actors := actor_sets[coalesce(selection_ends[i - 1], 0) + 1:selection_ends[i]];
      some_kinds := kind_sets[coalesce(selection_ends[i - 1], 0) + 1:selection_ends[i]];
    end if;
    checkpoint := coalesce(befores[i], 9223372036854775807);
    newer := after[i];
    if left_out > 400 then
      select s.moment, s.newer into checkpoint, newer
        from change_seek(of_tenant, some_actors, some_kinds, after[i] + left_out, sinces[i], after[i] + counts[i], checkpoint, newer) s;
      left_out := after[i] + left_out - newer;
    end if;
    return query
      select change_read.total, change_read.current, e.at, e.sequence, e.kind, e.actor, e.entity_id, e.name, e.schema_version,
             e.related, e.paths
        from change_newest(of_tenant, now, some_actors, some_kinds, sinces[i], checkpoint, left_out, wanted,
                           -- twice as long as it takes where entries are spread evenly; not as integers, whose product may be too large
                           (1000 + least(2 * (left_out + wanted)::float8 / counts[i], 1)
                                   * greatest(least(befores[i], now) - sinces[i], 1))::bigint) as e;
    get diagnostics added = row_count;
    wanted := wanted - added;
    left_out := 0;
  end loop;
end
$$;
