-- The values that a path leads to in a document, as elements of a JSON array. A path that meets an array continues in
-- each of its elements, in arrays within arrays too; what it ends at counts, and of an array all elements as well.
-- For each segment of the path `keys` has the step that takes the member of objects, and `places` the step that takes
-- an element of arrays, null for a segment that is no place.
create function document_values(document jsonb, keys jsonpath[], places jsonpath[]) returns jsonb
language plpgsql immutable parallel safe cost 1000 as $$
declare
  found jsonb := jsonb_build_array(document);
  level jsonb;
begin
  for segment in 1 .. cardinality(keys) loop
    level := found;
    found := '[]';
    loop
      found := found || jsonb_path_query_array(level, keys[segment]);
      level := jsonb_path_query_array(level, 'strict $[*] ? (@.type() == "array")');
      exit when level = '[]';
      if places[segment] is not null then
        found := found || jsonb_path_query_array(level, places[segment]);
      end if;
      level := jsonb_path_query_array(level, '$[*][*]');
    end loop;
    if found = '[]' then
      return found;
    end if;
    -- Each level of arrays within arrays doubles the ways to one value. Equal values need one way only.
    if places[segment] is not null then
      found := (select jsonb_agg(distinct value) from jsonb_array_elements(found) value);
    end if;
  end loop;
  level := found;
  loop
    level := jsonb_path_query_array(level, 'strict $[*] ? (@.type() == "array")');
    exit when level = '[]';
    level := jsonb_path_query_array(level, '$[*][*]');
    found := found || level;
  end loop;
  return found;
end
$$;
