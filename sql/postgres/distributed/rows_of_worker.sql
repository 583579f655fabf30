-- rows_of_all of one server, of the shards of the worker that would have of_tenant. It runs there.
create function rows_of_worker(of_tenant text, query text, of_tables text[]) returns setof json language plpgsql as $$
declare
  names text[];
begin
  for names in
    select array_agg(shard_name(s.logicalrelid, s.shardid) order by t.place)
      from unnest(of_tables) with ordinality as t (name, place)
      join pg_dist_shard s on s.logicalrelid = t.name::regclass
      join pg_dist_placement p on p.shardid = s.shardid and p.shardstate = 1
      join pg_dist_local_group here on here.groupid = p.groupid
      group by s.shardminvalue
  loop
    return query execute 'select to_json(r) from (' || format(query, variadic names) || ') r';
  end loop;
end
$$;
