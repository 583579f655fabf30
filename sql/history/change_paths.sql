-- The paths of an entry as jsonb. In: their JSON text. Out: an object of paths. It reads no table, so it forces no
-- plan.
-- jsonb knows neither U+0000, nor half of a surrogate pair, nor numbers of more than some 100,000 digits. U+0001
-- U+0001 stands for the first, U+0001 U+0002 for U+0001, U+0001 U+0003 for a half (src/query/json-projection.ts). A
-- larger number becomes one that is larger than all others, and one that is nearer to zero becomes one that is nearer
-- than all others.
create function change_paths(paths text) returns jsonb language plpgsql immutable parallel restricted cost 100 as $$
declare
  plain text;
begin
  if strpos(paths, '\u') = 0 then
    begin
      return paths::jsonb;
    exception when numeric_value_out_of_range then
      -- the same with numbers of a size that jsonb knows
      null;
    end;
  end if;
  -- so that each backslash begins an escape
  plain := regexp_replace(paths, '\\\\', '\\u005c', 'g');
  plain := regexp_replace(plain, '\\u0001', '\\u0001\\u0002', 'g');
  plain := regexp_replace(plain, '\\u0000', '\\u0001\\u0001', 'g');
  plain := regexp_replace(plain, '\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])', '\\u0001\\u0003', 'g');
  plain := regexp_replace(plain, '(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}',
                          '\\u0001\\u0003', 'g');
  return (
    select string_agg(case
             when found.token[1] ~ '^-?[0-9]'
               and (length(found.token[1]) > 400 or found.token[1] ~ '[eE][+-]?[0-9]{4}')
             then bounded.number else found.token[1] end, '' order by found.place)
      from regexp_matches(plain, '"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|[^"0-9-]+', 'g') with ordinality
        as found (token, place)
      cross join lateral (
        select substring(found.token[1] for 1) = '-' as negative,
               length(substring(found.token[1] from '^-?([0-9]+)')) as digits,
               coalesce(substring(found.token[1] from '[eE][+]?(-?[0-9]+)$'), '0') as exponent,
               substring(found.token[1] from '^-?[0.]*(?:[eE].*)?$') is not null as zero
      ) as parts
      cross join lateral (
        select parts.digits + case when length(parts.exponent) > 8 and parts.exponent ~ '^-' then -1000000
          when length(parts.exponent) > 8 then 1000000 else parts.exponent::integer end as magnitude
      ) as size
      cross join lateral (
        select case when parts.zero then '0'
          when size.magnitude > 100000 then case when parts.negative then '-' else '' end || '9e100000'
          when size.magnitude < -9000 then case when parts.negative then '-' else '' end || '1e-9001'
          else left(found.token[1], 110000) end as number
      ) as bounded
  )::jsonb;
end
$$;
