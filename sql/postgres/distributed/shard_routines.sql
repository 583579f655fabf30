-- The schema whose routines read the tenant's shard as tables of this server; null where this server does not have
-- the shard, or the shard has no such routines yet. What the calling statement's snapshot says counts: a shard whose
-- move that snapshot does not see is whole in it. It runs on the worker inside of other routines, so its parameter is
-- not named of_tenant.
create function shard_routines(for_tenant text) returns text language plpgsql stable as $$
declare
  shard constant bigint := get_shard_id_for_distribution_column('tenant', for_tenant);
begin
  return (
    select n.nspname
      from pg_dist_local_group here
      join pg_dist_placement p on p.groupid = here.groupid
      cross join pg_namespace n
      where p.shardid = shard and p.shardstate = 1 and n.nspname = 'annals_shard_' || shard);
end
$$;
