-- Gives positions to the committed entries of a tenant that have none, and returns their number; null while another
-- call for the tenant runs. It takes about `most` entries and may leave some.
--
-- Call it alone in a read committed transaction.
--
-- Newly visible are the transactions that the snapshot of the last call saw running, and later ones. Transaction ids
-- only narrow the search, so that dead rows are not read again: `position is null` decides. If they are invalid
-- (restored, moved to another worker), all deltas are examined. The order is that of the deltas' numbers: a transaction
-- that began after the commit of another has the greater one.
create function change_position_give(of_tenant text, most bigint default 200000) returns bigint
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  this_placement constant xid8 := change_placement(of_tenant);
  last_given record;
  -- whether the ids of `last_given.snapshot` are of this place
  is_known boolean;
  seen_before xid8;
  seen_running xid8[];
  taken record;
  marked bigint;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('change_position ' || of_tenant, 0)) then
    return null;
  end if;
  select p.snapshot, p.placement into last_given
    from change_position p where p.tenant = of_tenant order by p.first desc limit 1;
  -- 0: the tenant is on another server
  is_known := last_given.snapshot is not null and this_placement is distinct from '0'
    and last_given.placement is not distinct from this_placement;
  if is_known then
    seen_before := pg_snapshot_xmax(last_given.snapshot);
    seen_running := array(select pg_snapshot_xip(last_given.snapshot));
  end if;

  -- one statement, and so one snapshot
  with found as materialized (
    select d.delta, d.ctid as place, d.ats, d.sequences, d.recorded from change_delta d
      where not is_known and d.tenant = of_tenant and d.position is null
    union all
    select d.delta, d.ctid as place, d.ats, d.sequences, d.recorded from change_delta d
      where is_known and d.tenant = of_tenant and d.transaction >= seen_before and d.position is null
    union all
    -- not `= any`: before PostgreSQL 17 that may read all deltas of the tenant
    select running.* from unnest(seen_running) as seen (id)
      cross join lateral (
        select d.delta, d.ctid as place, d.ats, d.sequences, d.recorded from change_delta d
          where is_known and d.tenant = of_tenant and d.transaction = seen.id and d.position is null offset 0
      ) as running
    union all
    select d.delta, d.ctid as place, d.ats, d.sequences, d.recorded from change_delta d
      where is_known and d.tenant = of_tenant and d.transaction is null and d.position is null
  ), measured as materialized (
    select found.*, sum(cardinality(found.ats)) over (order by found.delta) - cardinality(found.ats) as before
      from found
  ), ordered as (
    select m.delta, m.place, m.before, m.recorded, entry.number, entry.at, entry.sequence
      from measured m
      cross join lateral unnest(m.ats, m.sequences) with ordinality as entry (at, sequence, number)
      where m.before < most
      order by m.delta, entry.number
  )
  select array_agg(o.at) as ats, array_agg(o.sequence) as sequences, array_agg(o.recorded) as recorded,
         array_agg(o.delta) filter (where o.number = 1) as deltas,
         array_agg(o.place) filter (where o.number = 1) as places,
         array_agg(o.before) filter (where o.number = 1) as befores,
         (select count(*) from measured m where m.before >= most) as left_over, pg_current_snapshot() as snapshot,
         (select p.first + cardinality(p.fingerprints) from change_position p
            where p.tenant = of_tenant order by p.first desc limit 1) as next
    into taken
    from ordered o;
  if taken.ats is null then
    return 0;
  end if;
  if taken.left_over > 0 then
    taken.snapshot := last_given.snapshot;
  elsif this_placement = '0' then
    taken.snapshot := null;
  end if;
  taken.next := coalesce(taken.next, 1);
  marked := change_position_mark(of_tenant, taken.next, taken.deltas, taken.befores, taken.places);
  if marked <> cardinality(taken.deltas) then
    -- a call on the server that the tenant has left, or its deletion
    raise exception 'the entries of % got positions meanwhile', of_tenant using errcode = 'serialization_failure';
  end if;
  perform change_position_write(
    of_tenant, taken.next, taken.ats, taken.sequences, taken.recorded,
    array_fill(change_position_fingerprint(), array[cardinality(taken.ats)]), taken.snapshot,
    case when taken.left_over > 0 then last_given.placement else this_placement end);
  return cardinality(taken.ats);
end
$$;
