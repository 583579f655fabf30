-- index_bytes of one server: the sum of the shards, because the coordinator has an empty index. One command for each
-- worker; a worker that is away adds nothing.
create function index_bytes(of_index regclass) returns bigint language plpgsql as $$
declare
  own record;
begin
  select n.nspname, c.relname into own from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = of_index;
  return (
    select coalesce(sum(case when worker.success then worker.result end::bigint), 0)
      -- The name of an index of a shard ends with the number of the shard.
      from run_command_on_workers(format(
        'select coalesce(sum(pg_relation_size(c.oid)), 0) from pg_class c join pg_namespace n on n.oid = c.relnamespace
           where c.relkind = ''i'' and n.nspname = %L and left(c.relname, %s) = %L
             and substr(c.relname, %s) ~ ''^[0-9]+$''',
        own.nspname, length(own.relname) + 1, own.relname || '_', length(own.relname) + 2)) worker);
end
$$;
