-- A page over intervals of time, newest first, each with selections of its own: those from selection_ends[i - 1] + 1 to
-- selection_ends[i]. An interval is [sinces[i], befores[i]); an infinite one ends at null. The first row has the total
-- alone; the others have the entries of the page. All is read in the snapshot of the calling statement. `known` is how
-- many entries the selections of the first interval have from its beginning on, whatever its end; null where that is to be
-- found out. Of a single interval the first row also says how many entries its selections have at or after some `moments`;
-- the first of these is the minute after it begins, or null.
create function change_page(of_tenant text, now bigint, horizon bigint, sinces bigint[], befores bigint[],
                            selection_ends integer[], actor_sets text[], kind_sets text[], skip bigint, size bigint,
                            known bigint default null)
returns table (total bigint, at bigint, sequence bigint, moments bigint[], ranks bigint[]) language plpgsql stable rows 50
-- planned once: its statements and those of what it calls are ranges of indexes whatever they are given, and to plan
-- them anew takes several times as long as to run them; a plan from when the tables were small must not go through
-- all of what an import has brought since
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  counts bigint[] := '{}';
  before_counts bigint[] := '{}';
  -- where the page begins
  first_interval integer := 1;
  left_out bigint := skip;
  minute bigint;
  begun bigint;
  taken bigint := 0;
  added bigint;
  some_actors text[];
  some_kinds text[];
  start record;
  wanted bigint;
  span bigint;
begin
  total := 0;
  if cardinality(sinces) = 1 then
    moments := array[null::bigint];
    ranks := array[null::bigint];
  end if;
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
      counts[i] := known - before_counts[i];
    else
      if cardinality(sinces) = 1 then
        -- windows that begin in the same minute can use it again
        minute := (sinces[i] + 59999) / 60000 * 60000;
        begun := change_few(of_tenant, some_actors, some_kinds, sinces[i], minute);
      end if;
      if begun is null then
        counts[i] := change_rank(of_tenant, some_actors, some_kinds, sinces[i]) - before_counts[i];
      else
        moments[1] := minute;
        ranks[1] := change_rank(of_tenant, some_actors, some_kinds, minute);
        counts[i] := begun + ranks[1] - before_counts[i];
      end if;
    end if;
    if cardinality(sinces) = 1 and befores[i] is not null then
      moments := moments || befores[i];
      ranks := ranks || before_counts[i];
    end if;
    total := total + counts[i];
  end loop;
  while counts[first_interval] <= left_out loop
    left_out := left_out - counts[first_interval];
    first_interval := first_interval + 1;
  end loop;
  if size = 0 or first_interval > cardinality(sinces) then
    return next;
    return;
  end if;

  for i in first_interval..cardinality(sinces) loop
    some_actors := actor_sets[coalesce(selection_ends[i - 1], 0) + 1:selection_ends[i]];
    some_kinds := kind_sets[coalesce(selection_ends[i - 1], 0) + 1:selection_ends[i]];
    select coalesce(befores[i], 9223372036854775807) as cell_end, left_out as cell_skip,
           greatest(least(befores[i], now) - sinces[i], 1) as cell_length, counts[i] as entries
      into start;
    if left_out > 200 then
      select * into start from change_seek(of_tenant, some_actors, some_kinds, before_counts[i] + left_out);
      if cardinality(sinces) = 1 then
        -- what is before the window, or hidden, nobody begins to read at
        select moments || array_agg(told.moment), ranks || array_agg(told.rank) into moments, ranks
          from unnest(start.moments, start.ranks) as told (moment, rank)
          where told.moment >= sinces[i];
      end if;
      if start.cell_end > befores[i] then
        start.cell_end := befores[i];
        start.cell_skip := left_out;
      end if;
    end if;
    if i = first_interval then
      return next;
      moments := null;
      ranks := null;
    end if;
    continue when counts[i] = 0;
    wanted := start.cell_skip + size - taken;
    -- a cell that is known to have them all, or twice as long as it takes where they are spread evenly
    span := start.cell_length;
    if wanted > start.entries or left_out <= 200 then
      span := 1000 + 2 * wanted * start.cell_length / greatest(start.entries, 1);
    end if;
    return query
      select total, newest.at, newest.sequence, null::bigint[], null::bigint[]
        from change_newest(of_tenant, now, some_actors, some_kinds, sinces[i], start.cell_end, start.cell_skip, size - taken,
                           span) as newest;
    get diagnostics added = row_count;
    taken := taken + added;
    exit when taken >= size;
    left_out := 0;
  end loop;
end
$$;
