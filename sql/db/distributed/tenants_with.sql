-- tenants_with of one server, shard by shard: a worker that is away leaves out its tenants, and the work for all others goes on.
create function tenants_with(of_table text, condition text) returns setof text language plpgsql as $$
declare
  command constant text := format('select coalesce(json_agg(distinct t.tenant), ''[]'') from %%s t where %s', condition);
begin
  return query
    select found.tenant
      from run_command_on_shards(of_table::regclass, command) shard
      cross join json_array_elements_text(case when shard.success then shard.result else '[]' end::json) as found (tenant)
      order by found.tenant collate "C";
end
$$;
