-- shard_routines for a routine that writes. Until the transaction ends, no move of the shard ends: the lock is the
-- one that the cluster's own writes take. Null also where the transaction's snapshot is older than the end of a move
-- that the lock waited for.
create function shard_routines_to_write(for_tenant text) returns text language plpgsql as $$
declare
  shard constant bigint := get_shard_id_for_distribution_column('tenant', for_tenant);
begin
  perform lock_shard_metadata(5, array[shard]);
  -- The placement that such a snapshot still sees has been deleted since.
  if current_setting('transaction_isolation') <> 'read committed'
      and exists (select from pg_dist_placement p where p.shardid = shard and p.xmax <> '0') then
    return null;
  end if;
  return shard_routines(for_tenant);
end
$$;
