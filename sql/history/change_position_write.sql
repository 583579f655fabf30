-- Writes positions from `begin_at` on, which follow those that there are, and answers the first one of the row that it
-- began with. Rows end at multiples of 4096. Positions that complete a block of 16, 256 or 4096 become one row with
-- those before them in the largest such block, from `after` + 1 on: so each is written four times at most, and few
-- rows are left. The last row has the snapshot.
--
-- Times and sequences of a block of 4096 that small rounds have completed are compressed: each of those rounds has
-- fingerprints and times of recording of its own, which compress little. Many at once are an import, which is not to
-- pay for it. PostgreSQL compresses what comes into `recorded`, and what goes on from there to a column without
-- compression stays as it is.
create function change_position_write(
  of_tenant text, begin_at bigint, after bigint, ats bigint[], sequences bigint[], recorded bigint[],
  fingerprints integer[], snapshot pg_snapshot, placement xid8
) returns bigint
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  max_row constant bigint := 4096;
  last_position constant bigint := begin_at + cardinality(ats) - 1;
  is_compressed constant boolean := cardinality(ats) < max_row / 2
    and last_position / max_row > (begin_at - 1) / max_row;
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
      begin_after := greatest((begin_at - 1) / size * size, after);
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
      (tenant, first, ats, sequences, recorded, fingerprints, oldest, newest, snapshot, placement)
    select of_tenant, begin_at + part.low - 1,
           case when part.is_first_compressed then '{}' else part.ats end,
           case when part.is_first_compressed then '{}' else sequences[part.low:part.high] end,
           case when part.is_first_compressed then part.ats else recorded[part.low:part.high] end,
           fingerprints[part.low:part.high],
           coalesce((select min(part_at) from unnest(part.ats) as part_at where part_at >= 0), -1),
           (select max(part_at) from unnest(part.ats) as part_at),
           case when part.is_last then change_position_write.snapshot end,
           case when part.is_last then change_position_write.placement end
      from (
        select bounds.low, bounds.high, ats[bounds.low:bounds.high] as ats, bounds.high = cardinality(ats) as is_last,
               is_compressed and bounds.low = 1 as is_first_compressed
          from (
            select greatest(block * max_row - begin_at + 2, 1)::integer as low,
                   least((block + 1) * max_row - begin_at + 1, cardinality(ats))::integer as high
              from generate_series((begin_at - 1) / max_row, (last_position - 1) / max_row) as block
          ) as bounds
      ) as part;
  if is_compressed then
    size := max_row - (begin_at - 1) % max_row;
    update change_position p set ats = p.recorded, recorded = change_position_write.sequences[1:size]
      where p.tenant = of_tenant and p.first = begin_at;
    update change_position p set sequences = p.recorded, recorded = change_position_write.recorded[1:size]
      where p.tenant = of_tenant and p.first = begin_at;
  end if;
  return begin_at;
end
$$;
