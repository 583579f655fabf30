-- The name of a path. In: a path as an entry has it. Out: the same with `*` for each segment that is written as an
-- array position (src/recording/path-names.ts is the same for recording). It reads no table, so it forces no plan.
create function change_path_name(path text) returns text language sql immutable parallel safe as $$
  select regexp_replace(path, '(^|(?<!\\)(?:\\\\)*\.)(?:0|[1-9][0-9]*)(?=\.|$)', '\1*', 'g');
$$;
