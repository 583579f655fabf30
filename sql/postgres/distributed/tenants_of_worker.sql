-- tenants_with of one server, of the shards of the worker that would have of_tenant. It runs there, in one call for
-- all of them. A shard that has never had a row costs no statement.
create function tenants_of_worker(of_tenant text, of_tables text[],
  conditions text[]) returns table (question integer, tenant text)
language plpgsql as $$
begin
  return query
    select q.number::integer, found.tenant
      from unnest(of_tables, conditions) with ordinality as q (of_table, condition, number)
      join pg_dist_shard s on s.logicalrelid = q.of_table::regclass
      join pg_dist_placement p on p.shardid = s.shardid and p.shardstate = 1
      join pg_dist_local_group here on here.groupid = p.groupid
      cross join to_regclass(shard_name(s.logicalrelid, s.shardid)) as shard (name)
      cross join lateral tenants_in(shard.name, q.condition) as found (tenant)
      where pg_relation_size(shard.name) > 0;
end
$$;
