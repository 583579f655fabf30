-- The values of a path of an entry as a query sees them, with masks instead of hidden values. In: the path and its
-- sides as change_paths has them, a regular expression that accepts hidden paths and those beneath them, and the
-- maximum number of nested arrays to look into. Out: the sides. Values inside of objects stay: no query can read them
-- (src/history/search/path-predicate.ts). It reads no table, so it forces no plan.
create function change_hidden(path text, sides jsonb, hidden text, levels integer) returns jsonb
language plpgsql immutable parallel safe as $$
begin
  return coalesce((
    select jsonb_object_agg(side.key, change_hidden_value(change_hidden.path, side.value, change_hidden.hidden,
                                                         change_hidden.levels))
      from jsonb_each(change_hidden.sides) as side
  ), '{}');
end
$$;
