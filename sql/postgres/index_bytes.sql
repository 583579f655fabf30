-- The size of an index on disk, in bytes.
create function index_bytes(of_index regclass) returns bigint language sql as $$
  select pg_relation_size(of_index)
$$;
