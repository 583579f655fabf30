-- Writes positions from `begin_at` on, which follow the existing ones, and returns the first one of the row that it
-- began with. Rows end at multiples of 4096. Positions that complete a block of 16, 256 or 4096 become one row
-- with those before them in the largest such block: so each is written four times at most, and few rows are left. The
-- last row has the snapshot.
--
-- A row that reaches the end of its block is final, and packed where its numbers fit (0001-baseline.sql has the
-- layout): some 5 bytes a position instead of 17. `part` is computed once (offset 0), and so are the bounds of its
-- entries.
create function change_position_write(
  of_tenant text, begin_at bigint, ats bigint[], sequences bigint[], recorded bigint[],
  fingerprints integer[], snapshot pg_snapshot, placement xid8
) returns bigint
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  max_row constant bigint := 4096;
  two31 constant bigint := 2147483648;
  two32 constant bigint := 4294967296;
  last_position constant bigint := begin_at + cardinality(ats) - 1;
  size bigint;
  begin_after bigint;
  earlier record;
  earlier_first bigint;
  earlier_ats bigint[] := '{}';
  earlier_sequences bigint[] := '{}';
  earlier_recorded bigint[] := '{}';
  earlier_fingerprints integer[] := '{}';
begin
  foreach size in array array[max_row, 256, 16] loop
    if last_position / size > (begin_at - 1) / size then
      begin_after := (begin_at - 1) / size * size;
      for earlier in
        select p.first, p.ats, p.sequences, p.recorded, p.fingerprints from change_position p
          where p.tenant = of_tenant and p.first > begin_after and p.first < begin_at order by p.first
      loop
        earlier_first := coalesce(earlier_first, earlier.first);
        earlier_ats := earlier_ats || earlier.ats;
        earlier_sequences := earlier_sequences || earlier.sequences;
        earlier_recorded := earlier_recorded || earlier.recorded;
        earlier_fingerprints := earlier_fingerprints || earlier.fingerprints;
      end loop;
      exit;
    end if;
  end loop;
  if earlier_first is not null then
    delete from change_position p where p.tenant = of_tenant and p.first >= earlier_first and p.first < begin_at;
    begin_at := earlier_first;
    ats := earlier_ats || ats;
    sequences := earlier_sequences || sequences;
    recorded := earlier_recorded || recorded;
    fingerprints := earlier_fingerprints || fingerprints;
  end if;
  insert into change_position
      (tenant, first, ats, sequences, sequence_base, at_lows, at_highs, sequence_offsets, recorded, fingerprints,
       oldest, newest, snapshot, placement)
    select of_tenant, begin_at + part.low - 1, case when entries.fit then '{}' else part.ats end,
           case when entries.fit then '{}' else part.sequences end, case when entries.fit then entries.base end,
           packed.at_lows, packed.at_highs, packed.sequence_offsets, recorded[part.low:part.high],
           fingerprints[part.low:part.high], entries.oldest, entries.newest,
           case when part.is_last then change_position_write.snapshot end,
           case when part.is_last then change_position_write.placement end
      from (
        select bounds.low, bounds.high, ats[bounds.low:bounds.high] as ats,
               sequences[bounds.low:bounds.high] as sequences, bounds.high = cardinality(ats) as is_last,
               (begin_at + bounds.high - 1) % max_row = 0 as is_final
          from (
            select greatest(block * max_row - begin_at + 2, 1)::integer as low,
                   least((block + 1) * max_row - begin_at + 1, cardinality(ats))::integer as high
              from generate_series((begin_at - 1) / max_row, (last_position - 1) / max_row) as block
          ) as bounds offset 0
      ) as part
      cross join lateral (
        select bounds.oldest, bounds.newest, bounds.base,
               part.is_final and not bounds.is_odd and bounds.newest - bounds.oldest < (1::bigint << 46)
                 and bounds.top - bounds.base < two31 as fit
          from (
            select coalesce(min(entry.at) filter (where entry.at >= 0), -1) as oldest, max(entry.at) as newest,
                   coalesce(min(entry.sequence - entry.number) filter (where entry.at >= 0), 0) as base,
                   coalesce(max(entry.sequence - entry.number) filter (where entry.at >= 0), 0) as top,
                   bool_or(entry.at < 0 and (entry.at <> -1 or entry.sequence <> -1)) as is_odd
              from unnest(part.ats, part.sequences) with ordinality as entry (at, sequence, number)
          ) as bounds offset 0
      ) as entries
      cross join lateral (
        select array_agg(
                 case when entry.at >= 0
                   then ((entry.at - entries.oldest + two31) & (two32 - 1)) - two31 else 0 end::integer
               ) as at_lows,
               array_agg(
                 case when entry.at >= 0 then (entry.at - entries.oldest + two31) >> 32 else -1 end::smallint
               ) as at_highs,
               array_agg(
                 case when entry.at >= 0 then entry.sequence - entry.number - entries.base else 0 end::integer
               ) as sequence_offsets
          from unnest(part.ats, part.sequences) with ordinality as entry (at, sequence, number)
          where entries.fit
      ) as packed;
  return begin_at;
end
$$;
