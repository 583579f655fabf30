-- The number that the cluster gave to the tenant's copy of change_entry.
create function change_placement(of_tenant text) returns xid8 language plpgsql stable as $$
begin
  return (
    select placement.placementid::text::xid8 from pg_dist_placement placement
      where placement.shardid = get_shard_id_for_distribution_column('change_entry', of_tenant));
end
$$;
