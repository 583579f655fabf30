-- A string of the projection as canonical JSON, in which what stands for U+0000 and U+0001 is written as those.
create function :"schema".canonical_string(value text) returns text
language plpgsql immutable parallel safe as $$
declare
  quoted text := to_json(value)::text;
begin
  if strpos(value, U&'\0001') = 0 then
    return quoted;
  end if;
  quoted := regexp_replace(quoted, '(?<!\\)((?:\\\\)*)\\u0001\\u0001', '\1\\u0000', 'g');
  return regexp_replace(quoted, '(?<!\\)((?:\\\\)*)\\u0001\\u0002', '\1\\u0001', 'g');
end
$$;
