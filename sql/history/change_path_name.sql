-- The name of a path. In: a path as an entry has it. Out: the same with `*` for each segment that is written as a
-- place in an array (src/recording/path-names.ts says it again, for recording). It reads no
-- table, so it forces no plan.
create function change_path_name(path text) returns text language sql immutable parallel safe as $$
  select regexp_replace(path, '(^|(?<!\\)(?:\\\\)*\.)(?:0|[1-9][0-9]*)(?=\.|$)', '\1*', 'g');
$$;
