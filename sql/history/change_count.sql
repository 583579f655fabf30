-- Counts the entries of one selection in ranges of time. All counts of Annals come from here.
--
-- In: the selection, `of_actors` and `of_kinds`:
--   {0} and {0}      all entries
--   {0} and {k,l}    entries of the kinds k and l, by any actor
--   {a,b} and {}     entries of the actors a and b, of any kind
--   {a,b} and {k,l}  entries of the actors a and b of the kinds k and l
-- `moments`, in ascending order, begin the ranges; the last one ends at `before` (null: it has no end). `split` says
-- what the entries are counted by: 'kind' (`of_kinds` lists them), 'actor', or '' for nothing (key 0). With 'actor',
-- {0} means each actor.
--
-- Out: a key, a range (from 1) and a number. A range of a key may come in several rows, some of them negative; their
-- sum is the number.
--
-- Data: time is cut into cells of five levels, of 1,024 days, 32 days, a day, an hour and a minute
-- (change_cell). The children of a cell are the cells of the next level in it, and the seconds of a minute. A row of
-- change_tally is one cell and one key. It lists the children with entries, and beside each how many entries the cell
-- has up to the end of that child:
--   children {2,5,9}, upto {40,100,130}: 40 entries in child 2, 60 in child 5, 30 in child 9
--
-- Algorithm: what comes after a moment is counted on the way down the cells that hold it.
--   1. A cell says what comes after the child that the moment is in. In the example, for a moment in child 5, that is
--      130 - 100 = 30. It leaves open how the 60 entries of child 5 lie before and after the moment.
--   2. If that child is dense (change_dense: it has 64 entries or more), it has a tally of its own on the next level,
--      which is counted in the same way. Otherwise its entries are read. So are those of a second. A cell of an actor
--      has tallies of all its kinds or of none, and where it has them, so have the cells that hold it: for entries of
--      some kinds, those of the coarsest cell or child without them are read (change_dense_pairs).
--   3. What comes after moment i is in range i or in a later one. It is added to range i and taken from range i - 1.
--      So an entry that comes after moments 1, 2 and 3 counts 1 in the end, in range 3. Of an entry that is read, that
--      is 1 in its own range, and -1 in the range in which its child begins: there the way down counts it.
--   4. Entries that no fold has taken into the tallies yet are in change_delta, and are added.
-- Which cells and children these are depends on the moments alone: it is written down first (the marks), and then all
-- keys go down together, level by level. A key costs at most five tallies a moment, and 255 entries or those of one
-- second.
--
-- Plans: every key is one range of an index. The routines that Annals calls set how statements are planned, and this
-- one inherits the settings:
--   plan_cache_mode   Planning takes longer than the statement. So a plan is made once for a connection, perhaps at a
--                     time when the tables were empty, and must not depend on their sizes:
--   cross join lateral (... offset 0)
--                     A fence: PostgreSQL does not merge such a subquery into the statement around it. It runs once
--                     for each row to the left, a key or a cell, and nothing but an index can serve it. Nor does it
--                     put the rows of all keys into a hash table for `exists`.
--   order by at, sequence with enable_sort = off
--                     Only the index that is meant has the range and this order. Another one would have to be sorted.
--   enable_seqscan = off
--                     A table that was empty when the plan was made is not read as a whole.
--   case when x in (select unnest(a)) then true end
--                     A list is hashed, however short the planner believes it to be.
--   jit = off         To compile a statement takes longer than to run it.
create function change_count(of_tenant text, of_actors bigint[], of_kinds bigint[], moments bigint[],
                             before bigint, split text)
returns table (key bigint, range integer, entries bigint)
language plpgsql stable as $$
#variable_conflict use_column
declare
  end_of_time constant bigint := 9223372036854775807;
  -- no tenant is called '': statements run for it, so that the connection has their plans (src/history/warm-up.ts)
  only_plans constant boolean := of_tenant = '';
  by_actors constant boolean := of_actors <> '{0}' or split = 'actor';
  of_any_kind constant boolean := of_kinds in ('{}', '{0}');
  by_pairs constant boolean := by_actors and not of_any_kind;
  cuts constant bigint[] := case when before is null then moments else moments || before end;
  last_range constant integer := cardinality(moments);
  -- what has tallies: actors, or else kinds (0: the tenant)
  keys bigint[] := case when not by_actors then case when of_any_kind then '{0}' else of_kinds end
                        when of_actors = '{0}' then array(select a.actor from change_actor a where a.tenant = of_tenant)
                        else of_actors end;
  -- the kinds of an actor's tallies that are read; kind 0 has the density of the actor
  kinds constant bigint[] := case when of_any_kind then '{0}' else 0::bigint || of_kinds end;
  highest_kind constant bigint := (select max(k) from unnest(kinds) as k);
  -- the cells of level 0 after the first one
  later bigint[] := '{}';
  number bigint := moments[1] / change_cell(0);
  length bigint;
  part_length bigint;
  cut bigint;
  last_child integer;
  is_cut boolean;
  -- the cells that hold moments, and the places of the first and of the last mark of each
  cells integer := 0;
  cell_depths integer[] := '{}';
  cell_buckets bigint[] := '{}';
  cell_firsts integer[] := '{}';
  cell_lasts integer[] := '{}';
  -- A mark: what comes after a child of its cell counts so many times (1, -1 or 0) in a range. A moment has at
  -- most two on each level: 1 for its range, -1 for the range before.
  marks integer := 0;
  mark_children smallint[] := '{}';
  mark_ranges integer[] := '{}';
  mark_factors integer[] := '{}';
  -- if moments cut the child: its length, the first of them, its end, and the range in which it begins (0: before the
  -- first one)
  mark_lengths bigint[] := '{}';
  mark_sinces bigint[] := '{}';
  mark_ends bigint[] := '{}';
  mark_earliers integer[] := '{}';
  first_depth integer := 0;
  last_depth integer;
  -- what is counted from the entries: of a key, those of the child of a mark from the first moment in it on
  sparse_keys bigint[] := '{}';
  sparse_marks integer[] := '{}';
  few_keys bigint[];
  -- those that may have a cell of level 0 without tallies of their kinds
  thin_keys bigint[];
  few_marks integer[];
  found_keys bigint[];
  found_ranges integer[];
  found_entries bigint[];
begin
  -- Which cells and which children of them: the marks.
  loop
    number := (
      select t.bucket from change_tally t
        where t.tenant = of_tenant and t.level = 0 and t.bucket > number order by t.bucket limit 1);
    exit when number is null or number > coalesce(before, end_of_time) / change_cell(0);
    later := later || number;
  end loop;

  for depth in 0..4 loop
    length := change_cell(depth);
    part_length := change_cell(depth + 1);
    number := null;
    for place in 1..cardinality(cuts) loop
      cut := cuts[place];
      -- a cell that a moment begins counts as a whole on the level above
      continue when depth > 0 and cut % length = 0;
      is_cut := cut % part_length <> 0;
      last_child := cut % length / part_length - case when is_cut then 0 else 1 end;
      if number is distinct from cut / length then
        number := cut / length;
        cells := cells + 1;
        cell_depths[cells] := depth;
        cell_buckets[cells] := number;
        cell_firsts[cells] := marks + 1;
      elsif mark_children[marks] = last_child then
        -- nothing on this level is between this moment and the one before
        mark_ranges[marks] := place;
        mark_factors[marks] := case when place <= last_range then 1 else 0 end;
        continue;
      end if;
      if place > 1 then
        marks := marks + 1;
        mark_children[marks] := last_child;
        mark_ranges[marks] := place - 1;
        mark_factors[marks] := -1;
      end if;
      marks := marks + 1;
      mark_children[marks] := last_child;
      mark_ranges[marks] := place;
      mark_factors[marks] := case when place <= last_range then 1 else 0 end;
      if is_cut then
        mark_lengths[marks] := part_length;
        mark_sinces[marks] := cut;
        mark_ends[marks] := (cut / part_length + 1) * part_length;
        mark_earliers[marks] := place - 1;
        if place = 1 then
          mark_ends[marks] := least(mark_ends[marks], before);
        end if;
      end if;
      cell_lasts[cells] := marks;
    end loop;
  end loop;
  -- later cells of level 0 count as a whole in the range in which they begin
  foreach number in array later loop
    cells := cells + 1;
    marks := marks + 1;
    cell_depths[cells] := 0;
    cell_buckets[cells] := number;
    cell_firsts[cells] := marks;
    cell_lasts[cells] := marks;
    mark_children[marks] := -1;
    mark_ranges[marks] := width_bucket(number * change_cell(0) - 1, cuts);
    mark_factors[marks] := 1;
  end loop;

  if by_pairs then
    -- To read the few entries of an actor costs less than its tallies by kind. The last mark stands for the whole time.
    marks := marks + 1;
    mark_lengths[marks] := end_of_time;
    mark_sinces[marks] := moments[1];
    mark_ends[marks] := coalesce(before, end_of_time);
    mark_earliers[marks] := 0;
    select coalesce(array_agg(actor.key) filter (where actor.entries < 50 * (1 + cardinality(of_kinds))), '{}'),
           array_agg(actor.key) filter (where actor.entries >= 50 * (1 + cardinality(of_kinds))),
           array_agg(actor.key) filter (where actor.entries >= 50 * (1 + cardinality(of_kinds)) and actor.is_thin)
      into sparse_keys, keys, thin_keys
      from (
        select of.key, sum(t.entries) as entries, bool_or(t.total < change_dense_pairs()) as is_thin
          from unnest(keys) as of (key)
          cross join unnest(moments[1] / change_cell(0) || later) with ordinality as coarse (bucket, place)
          cross join lateral (
            -- of the first cell without the children that end before the first moment
            select one.upto[cardinality(one.upto)]
                     - case coarse.place when 1 then coalesce(one.upto[width_bucket(
                         (moments[1] % change_cell(0) / change_cell(1) - 1)::smallint, one.children)], 0) else 0 end
                     as entries,
                   one.upto[cardinality(one.upto)] as total
              from change_tally one
              where one.tenant = of_tenant and one.level = 0 and one.bucket = coarse.bucket and one.actor = of.key
                and one.kind = 0
              offset 0
          ) as t
          group by 1
      ) as actor;
    sparse_marks := array_fill(marks, array[cardinality(sparse_keys)]);
    -- So are the entries of the others in cells of level 0 that have no tallies of their kinds.
    foreach number in array moments[1] / change_cell(0) || later loop
      exit when thin_keys is null and not only_plans;
      select array_agg(of.key) into few_keys
        from unnest(thin_keys) as of (key)
        where not exists (
          select from change_tally one
            where one.tenant = of_tenant and one.level = 0 and one.bucket = number and one.actor = of.key
              and one.kind > 0
            offset 0);
      continue when few_keys is null;
      marks := marks + 1;
      mark_lengths[marks] := change_cell(0);
      mark_sinces[marks] := greatest(moments[1], number * change_cell(0));
      mark_ends[marks] := least(before, (number + 1) * change_cell(0));
      mark_earliers[marks] := 0;
      sparse_keys := sparse_keys || few_keys;
      sparse_marks := sparse_marks || array_fill(marks, array[cardinality(few_keys)]);
    end loop;
  end if;

  -- The way down. Keys with a dense child continue on the next level. Other children that moments cut are kept in
  -- sparse_keys and sparse_marks.
  while first_depth <= 4 and (keys is not null or only_plans) loop
    -- most of many keys are sparse already on level 0
    last_depth := case when first_depth = 0 and cardinality(keys) > 16 then 0 else 4 end;
    select array_agg(case split when 'kind' then one.kind when 'actor' then one.key else 0 end)
             filter (where one.counts),
           array_agg(mark_ranges[one.mark]) filter (where one.counts),
           array_agg(mark_factors[one.mark] * one.entries) filter (where one.counts),
           array_agg(one.key) filter (where one.is_cut and not one.is_dense),
           array_agg(one.mark) filter (where one.is_cut and not one.is_dense),
           array_agg(one.key) filter (where one.is_cut and one.is_dense)
      into found_keys, found_ranges, found_entries, few_keys, few_marks, keys
      from (
        select tally.key, tally.kind, tally.mark,
               mark_factors[tally.mark] <> 0 and (of_any_kind or tally.kind <> 0) as counts,
               tally.upto[cardinality(tally.upto)] - coalesce(tally.upto[tally.place], 0) as entries,
               mark_sinces[tally.mark] is not null and (tally.kind = 0 or not by_actors)
                 and tally.children[tally.place] = mark_children[tally.mark]
                 and (not by_pairs or tally.upto[cardinality(tally.upto)] >= change_dense_pairs() or exists (
                   select from change_tally one
                     where one.tenant = of_tenant and one.level = tally.depth and one.bucket = tally.bucket
                       and one.actor = tally.key and one.kind > 0
                     offset 0
                 )) as is_cut,
               tally.depth < 4 and mark_sinces[tally.mark] is not null and (tally.kind = 0 or not by_actors)
                 and tally.upto[tally.place] - coalesce(tally.upto[tally.place - 1], 0) >= change_dense()
                 and (not by_pairs
                   or tally.upto[tally.place] - coalesce(tally.upto[tally.place - 1], 0) >= change_dense_pairs()
                   or exists (
                   select from change_tally one
                     where one.tenant = of_tenant and one.level = tally.depth + 1
                       and one.bucket = mark_sinces[tally.mark] / mark_lengths[tally.mark]
                       and one.actor = tally.key and one.kind > 0
                     offset 0
                 )) as is_dense
          from (
            select marked.*, width_bucket(mark_children[marked.mark], marked.children) as place
              from (
                select cell.depth, cell.bucket, of.key, t.kind, t.children, t.upto,
                       generate_series(cell.first, cell.last) as mark
                  from unnest(cell_depths, cell_buckets, cell_firsts, cell_lasts) as cell (depth, bucket, first, last)
                  cross join unnest(keys) as of (key)
                  cross join lateral (
                    select one.kind, one.children, one.upto from change_tally one
                      where one.tenant = of_tenant and one.level = cell.depth and one.bucket = cell.bucket
                        and one.actor = case when by_actors then of.key else 0 end
                        and one.kind >= case when by_actors then 0 else of.key end
                        and one.kind <= case when by_actors then highest_kind else of.key end
                        and (not by_actors or one.kind = any (kinds))
                      offset 0
                  ) as t
                  where cell.depth between first_depth and last_depth
              ) as marked
          ) as tally
          -- fenced: each is looked up once
          offset 0
      ) as one;
    return query select * from unnest(found_keys, found_ranges, found_entries);
    sparse_keys := sparse_keys || few_keys;
    sparse_marks := sparse_marks || few_marks;
    if last_depth = 0 then
      keys := (select array_agg(distinct k) from unnest(keys) as k);
    end if;
    first_depth := last_depth + 1;
  end loop;

  -- The entries of sparse children: by actor, by kind, or all. Each counts 1 in its range and -1 in the range in which
  -- the child begins. Of kinds, whose histogram reads many, they are added up before they are handed on.
  if only_plans or by_actors and cardinality(sparse_keys) > 0 then
    return query
      select case split when 'kind' then e.kind when 'actor' then sparse.key else 0 end, place.range, place.entries
        from unnest(sparse_keys, sparse_marks) as sparse (key, mark)
        cross join lateral (
          select one.at, one.kind from change_entry one
            where one.tenant = of_tenant and one.actor = sparse.key
              and one.at >= mark_sinces[sparse.mark] and one.at < mark_ends[sparse.mark]
            order by one.at, one.sequence offset 0
        ) as e
        cross join lateral (values (width_bucket(e.at, cuts), 1::bigint), (mark_earliers[sparse.mark], -1))
          as place (range, entries)
        where place.range between 1 and last_range
          and case when of_any_kind or e.kind in (select unnest(of_kinds)) then true end;
  end if;
  if only_plans or not by_actors and not of_any_kind and cardinality(sparse_keys) > 0 then
    return query
      select case split when 'kind' then found.key else 0 end, place.range, place.entries
        from (
          select sparse.key, sparse.mark, width_bucket(e.at, cuts) as range, count(*) as entries
            from unnest(sparse_keys, sparse_marks) as sparse (key, mark)
            cross join lateral (
              select one.at from change_entry one
                where one.tenant = of_tenant and one.kind = sparse.key
                  and one.at >= mark_sinces[sparse.mark] and one.at < mark_ends[sparse.mark]
                order by one.at, one.sequence offset 0
            ) as e
            group by 1, 2, 3
        ) as found
        cross join lateral (values (found.range, found.entries), (mark_earliers[found.mark], -found.entries))
          as place (range, entries)
        where place.range between 1 and last_range;
  end if;
  if only_plans or not by_actors and of_any_kind and cardinality(sparse_keys) > 0 then
    return query
      select 0::bigint, place.range, place.entries
        from unnest(sparse_marks) as sparse (mark)
        cross join lateral (
          select one.at from change_entry one
            where one.tenant = of_tenant and one.at >= mark_sinces[sparse.mark] and one.at < mark_ends[sparse.mark]
            order by one.at, one.sequence offset 0
        ) as e
        cross join lateral (values (width_bucket(e.at, cuts), 1::bigint), (mark_earliers[sparse.mark], -1))
          as place (range, entries)
        where place.range between 1 and last_range;
  end if;

  if only_plans or exists (select from change_delta d where d.tenant = of_tenant) then
    -- What no fold has taken yet. What was read as an entry above is counted already: it is taken off again.
    return query
      with waiting as materialized (
        select case when by_actors then p.actor when of_any_kind then 0 else p.kind end as key,
               case split when 'kind' then p.kind when 'actor' then p.actor else 0 end as name, p.at
          from change_delta d
          cross join lateral unnest(d.ats, d.kinds, d.actors) as p (at, kind, actor)
          where d.tenant = of_tenant and p.at >= moments[1]
            and (of_actors = '{0}' or p.actor in (select unnest(of_actors)))
            and (of_any_kind or p.kind in (select unnest(of_kinds)))
      ), child as materialized (
        select mark, mark_lengths[mark] as length, mark_sinces[mark] / mark_lengths[mark] as number
          from generate_series(1, marks) as mark
          where mark_lengths[mark] is not null
      ), placed as (
        select waiting.name, width_bucket(waiting.at, cuts) as range, 1 as entries from waiting
        union all
        select waiting.name, place.range, place.entries
          from waiting
          cross join (select distinct child.length from child) as of
          join child on child.length = of.length and child.number = waiting.at / of.length
           and waiting.at >= mark_sinces[child.mark] and waiting.at < mark_ends[child.mark]
          cross join lateral (
            values (width_bucket(waiting.at, cuts), -1), (mark_earliers[child.mark], 1)
          ) as place (range, entries)
          where (waiting.key, child.mark) in (select * from unnest(sparse_keys, sparse_marks))
      )
      select placed.name, placed.range, sum(placed.entries)::bigint from placed
        where placed.range between 1 and last_range
        group by 1, 2;
  end if;
end
$$;
