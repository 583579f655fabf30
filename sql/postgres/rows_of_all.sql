-- The rows of a query, as JSON, over the tables of all tenants: %1$s stands for the first of them. It is the program's
-- own text. In a cluster these are the rows of each shard by itself, and a worker that is away leaves out its own.
create function rows_of_all(query text, of_tables text[]) returns setof json language plpgsql as $$
begin
  return query execute 'select to_json(r) from (' || format(query, variadic of_tables) || ') r';
end
$$;
