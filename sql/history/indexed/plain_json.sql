-- A JSON text with other characters in place of those that PostgreSQL's strings do not have: U+0001 U+0001 stands for
-- U+0000, U+0001 U+0002 for U+0001, U+D7FF U+E800 to U+EFFF for half of a surrogate pair, which keeps the order by code
-- point (src/query/json-projection.ts).
create function :"schema".plain_json(json_text text) returns text language plpgsql immutable parallel safe as $$
declare
  plain text := json_text;
begin
  if strpos(plain, '\u') = 0 or plain !~ '\\u(?:000[01]|[dD][89a-fA-F])' then
    return plain;
  end if;
  -- so that each backslash begins an escape
  plain := regexp_replace(plain, '\\\\', '\\u005c', 'g');
  plain := regexp_replace(plain, '\\u0001', '\\u0001\\u0002', 'g');
  plain := regexp_replace(plain, '\\u0000', '\\u0001\\u0001', 'g');
  plain := regexp_replace(plain, '\\u[dD]([89abAB][0-9a-fA-F]{2})(?!\\u[dD][c-fC-F])', '\\ud7ff\\ue\1', 'g');
  return regexp_replace(plain, '(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD]([c-fC-F][0-9a-fA-F]{2})', '\\ud7ff\\ue\1', 'g');
end
$$;
