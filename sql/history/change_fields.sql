-- The paths of an entry one by one, numbered from 1, each as a JSON object with one member: {"price":{"after":1}}. One
-- row with the number 0 and an empty object if it has none. Strings are in the form of plain_json.
create function change_fields(paths text, out number bigint, out field text) returns setof record
language sql immutable parallel safe rows 10 as $$
  select member.place, '{' || to_json(member.key)::text || ':' || member.value::text || '}'
    from json_each(plain_json(paths)::json) with ordinality as member (key, value, place)
  union all
  select 0, '{}' where not exists (select from json_object_keys(plain_json(paths)::json))
$$;
