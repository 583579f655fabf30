-- tenants_with of one server, worker by worker, on the connection that the coordinator keeps to each. A worker that
-- is away leaves out its tenants, and the work for all others goes on.
create function tenants_with(of_tables text[], conditions text[]) returns table (question integer, tenant text)
language plpgsql as $$
declare
  a_tenant text;
begin
  -- A call runs on the worker that has the tenant of its first argument: so of each worker a name that would be in
  -- one of its shards.
  for a_tenant in
    select distinct on (p.groupid) 'a' || n
      from pg_dist_shard s
      join generate_series(1, 64 * (select count(*) from pg_dist_node)) n
        on worker_hash('a' || n) between s.shardminvalue::integer and s.shardmaxvalue::integer
      join pg_dist_placement p on p.shardid = s.shardid and p.shardstate = 1
      where s.logicalrelid = 'tenant'::regclass
  loop
    begin
      return query select w.question, w.tenant from tenants_of_worker(a_tenant, of_tables, conditions) w;
    exception when connection_exception or connection_failure or admin_shutdown or crash_shutdown
      or cannot_connect_now then
      null;
    end;
  end loop;
end
$$;
