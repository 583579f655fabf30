-- index_bytes of one server: the sum of the shards, because the coordinator has an empty index. A worker that is away adds nothing.
create function index_bytes(of_index regclass) returns bigint language plpgsql as $$
declare
  of_table constant regclass := (select indrelid from pg_index where indexrelid = of_index);
  of_name constant text := (select relname from pg_class where oid = of_index);
  -- The name of an index of a shard ends with the number of the shard, as the name of the shard does.
  command constant text := format('select coalesce(pg_relation_size(to_regclass(%L || substring(''%%s'' from ''_[0-9]+$''))), 0)', of_name);
begin
  return (select coalesce(sum(case when shard.success then shard.result end::bigint), 0)
            from run_command_on_shards(of_table, command) shard);
end
$$;
