-- Gives the positions of a tenant's backlog to some `most` entries, the oldest first, and answers whether some are
-- left; false also where another call is at work. Each call goes on where the last one ended. Entries that are recorded
-- meanwhile have a position of their own or wait for one. Where entries end before the positions do, because they were
-- dropped, the rest have no entry.
--
-- To be called alone in a transaction that is read committed.
create function change_position_fill(of_tenant text, most integer default 20480) returns boolean
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  backlog record;
  portion record;
  given integer;
begin
  select b.until, b.filled, b.at, b.sequence, b.fingerprint into backlog
    from change_position_backlog b where b.tenant = of_tenant and b.filled < b.until for update skip locked;
  if not found then
    return false;
  end if;
  -- one statement, so that an entry is seen with what has its position
  with next as materialized (
    select e.at, e.sequence from change_entry e
      where e.tenant = of_tenant and (e.at, e.sequence) > (backlog.at, backlog.sequence)
      order by e.at, e.sequence limit most
  ), later as materialized (
    select entry.at, entry.sequence
      from change_position p
      cross join lateral (
        select plain.at, plain.sequence from unnest(p.ats, p.sequences) as plain (at, sequence)
        union all
        select p.oldest + packed.high * 4294967296 + packed.low, p.sequence_base + packed.number + packed.distance
          from unnest(p.at_lows, p.at_highs, p.sequence_offsets) with ordinality
            as packed (low, high, distance, number)
          where packed.high >= 0
      ) as entry
      where p.tenant = of_tenant and p.first > backlog.until
        and p.oldest <= (select max(next.at) from next) and p.newest >= (select min(next.at) from next)
    union all
    select entry.at, entry.sequence
      from change_delta d
      cross join lateral unnest(d.ats, d.sequences) as entry (at, sequence)
      where d.tenant = of_tenant and d.position is null
  ), marked as (
    select next.at, next.sequence, later.sequence is null as is_earlier
      from next left join later on later.at = next.at and later.sequence = next.sequence
      order by next.at, next.sequence
  )
  select coalesce(array_agg(m.at) filter (where m.is_earlier), '{}') as ats,
         coalesce(array_agg(m.sequence) filter (where m.is_earlier), '{}') as sequences, count(*) as entries,
         (array_agg(m.at))[count(*)] as last_at, (array_agg(m.sequence))[count(*)] as last_sequence
    into portion from marked m;
  if portion.entries = 0 then
    given := least(most, backlog.until - backlog.filled);
    portion.ats := array_fill(-1::bigint, array[given]);
    portion.sequences := portion.ats;
    portion.last_at := backlog.at;
    portion.last_sequence := backlog.sequence;
  else
    given := cardinality(portion.ats);
  end if;
  if backlog.filled + given > backlog.until then
    raise exception '% has more entries than positions were kept for them', of_tenant;
  end if;
  if given > 0 then
    perform change_position_write(
      of_tenant, backlog.filled + 1, 0::bigint, portion.ats, portion.sequences, portion.ats,
      array_fill(backlog.fingerprint, array[given]), null, null);
  end if;
  update change_position_backlog b
    set filled = backlog.filled + given, at = portion.last_at, sequence = portion.last_sequence
    where b.tenant = of_tenant;
  return backlog.filled + given < backlog.until;
end
$$;
