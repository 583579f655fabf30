-- Of each worker with shards a name: a tenant of this name would be there, so a call with it runs there. There need not
-- be such a tenant.
create function worker_names() returns setof text language sql stable as $$
  select distinct on (p.groupid) 'a' || n
    from pg_dist_shard s
    join generate_series(1, 64 * (select count(*) from pg_dist_node)) n
      on worker_hash('a' || n) between s.shardminvalue::integer and s.shardmaxvalue::integer
    join pg_dist_placement p on p.shardid = s.shardid and p.shardstate = 1
    where s.logicalrelid = 'tenant'::regclass
$$;
