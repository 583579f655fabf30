-- Writes a receipt of a tenant at the next position, and returns that. Entries of the tenant get no positions until the
-- transaction ends, so it must end soon. It is read committed: the call waits for one that gives positions.
create function receipt_write(of_tenant text, body text) returns bigint language plpgsql as $$
declare
  last_given record;
  receipt_position bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended('change_position ' || of_tenant, 0));
  -- The next round of entries looks for what this snapshot did not see.
  select p.first + cardinality(p.fingerprints) as next, p.snapshot, p.placement into last_given
    from change_position p where p.tenant = of_tenant order by p.first desc limit 1;
  receipt_position := coalesce(last_given.next, 1);
  perform change_position_write(
    of_tenant, receipt_position, array[-1::bigint], array[-1::bigint],
    array[(extract(epoch from clock_timestamp()) * 1000)::bigint], array[change_position_fingerprint()],
    last_given.snapshot, last_given.placement);
  insert into change_receipt (tenant, position, body) values (of_tenant, receipt_position, receipt_write.body);
  -- What seals the tenant follows its folds.
  insert into change_folded as so_far (tenant, folds) values (of_tenant, 1)
    on conflict (tenant) do update set folds = so_far.folds + 1;
  return receipt_position;
end
$$;
