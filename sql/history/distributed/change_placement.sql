-- The worker and its table of the shard: a move makes a new table, also where it comes back to a worker. 0: the shard
-- is not here.
create function change_placement(of_tenant text) returns xid8 language plpgsql stable as $$
declare
  shard constant text := shard_name('change_entry', get_shard_id_for_distribution_column('change_entry', of_tenant));
begin
  return coalesce(((select g.groupid::bigint << 32 from pg_dist_local_group g) | to_regclass(shard)::oid::bigint),
    0)::text::xid8;
end
$$;
