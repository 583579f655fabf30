-- A page over intervals of time, newest first, each with selections of its own (see change_total): those from
-- selection_ends[i - 1] + 1 to selection_ends[i]. An interval is [sinces[i], befores[i]); an infinite one ends at null.
-- Without the first `skip` entries, at most `size`.
--
-- The first row has the total, the other rows the entries of the page, with the ids of kinds and actors; `current` is
-- that of change_snapshot. All is read in the snapshot of the calling statement.
--
-- Each interval is counted (change_total). In the one where the page begins, change_seek finds a moment near the page
-- if that is far from the interval's end, and change_newest reads from there on. The settings are explained in
-- change_count.
create function change_read(of_tenant text, now bigint, sinces bigint[], befores bigint[], selection_ends integer[],
                            actor_sets text[], kind_sets text[], skip bigint, size bigint, names_since xid8,
                            recent bigint, lineage text)
returns table (total bigint, current boolean, at bigint, sequence bigint, kind bigint, actor bigint, entity_id text,
               name text, schema_version text, related text, paths text, erased text, correlation_id text)
language plpgsql stable
-- no sorts: where most entries share a moment, sorting what an index finds by time alone would read all of them for
-- each row
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
set enable_sort = off set enable_incremental_sort = off as $$
declare
  horizon bigint;
  -- of each interval how many entries it has
  counts bigint[] := '{}';
  first_selection integer;
  some_actors text[] := actor_sets;
  some_kinds text[] := kind_sets;
  left_out bigint := skip;
  wanted bigint := size;
  checkpoint bigint;
  newer bigint;
  added bigint;
begin
  select s.horizon, s.current into horizon, current
    from change_snapshot(of_tenant, now, names_since, recent, lineage) s;
  total := 0;
  first_selection := 1;
  for i in 1..cardinality(sinces) loop
    if cardinality(sinces) > 1 then
      some_actors := actor_sets[first_selection:selection_ends[i]];
      some_kinds := kind_sets[first_selection:selection_ends[i]];
      first_selection := selection_ends[i] + 1;
    end if;
    sinces[i] := greatest(sinces[i], horizon);
    counts[i] := 0;
    continue when befores[i] <= sinces[i];
    counts[i] := change_total(of_tenant, some_actors, some_kinds, sinces[i], befores[i]);
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
    if left_out > 400 then
      select s.moment, s.newer into checkpoint, newer
        from change_seek(of_tenant, some_actors, some_kinds, left_out, sinces[i], befores[i], counts[i]) s;
      left_out := left_out - newer;
    end if;
    return query
      select change_read.total, change_read.current, e.at, e.sequence, e.kind, e.actor, e.entity_id, e.name,
             e.schema_version, e.related, e.paths, e.erased, coalesce(e.correlation::text, e.correlation_text)
        from change_newest(of_tenant, now, some_actors, some_kinds, sinces[i], checkpoint, left_out, wanted,
                           -- twice as long as it takes where entries are spread evenly; not as integers, whose
                           -- product may be too large
                           (1000 + least(2 * (left_out + wanted)::float8 / counts[i], 1)
                                   * greatest(least(befores[i], now) - sinces[i], 1))::bigint) as e;
    get diagnostics added = row_count;
    wanted := wanted - added;
    left_out := 0;
  end loop;
end
$$;
