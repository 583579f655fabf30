-- The beginning, `wanted` characters or more, of the canonical JSON of a value: keys by code point, no blanks.
create function :"schema".canonical_json(value jsonb, wanted integer) returns text
language plpgsql immutable parallel safe as $$
declare
  result text;
  member record;
begin
  case jsonb_typeof(value)
    when 'object' then
      result := '{';
      for member in select each.key, each.value from jsonb_each(value) each order by each.key collate "C" loop
        exit when length(result) >= wanted;
        result := result || case when result = '{' then '' else ',' end || :"schema".canonical_string(left(member.key, 256)) || ':';
        result := result || :"schema".canonical_json(member.value, wanted - length(result));
      end loop;
      return result || '}';
    when 'array' then
      result := '[';
      -- An element and its comma are two characters at least.
      for member in select element from jsonb_array_elements(value) element limit wanted / 2 + 1 loop
        exit when length(result) >= wanted;
        result := result || case when result = '[' then '' else ',' end;
        result := result || :"schema".canonical_json(member.element, wanted - length(result));
      end loop;
      return result || ']';
    when 'string' then
      return :"schema".canonical_string(left(value #>> '{}', 256));
    when 'number' then
      return :"schema".canonical_number((value #>> '{}')::numeric);
    else
      return value::text;
  end case;
end
$$;
