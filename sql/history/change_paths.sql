-- The paths of an entry as jsonb. In: their JSON text. Out: an object of paths. It reads no table, so it forces no
-- plan. Parallel unsafe: before PostgreSQL 17 no plan that reads in parallel may enter an exception block, even in its
-- leader.
-- jsonb knows neither U+0000 nor half of a surrogate pair (plain_json), nor numbers of very many digits. One beyond the
-- bounds of a query is replaced by another one beyond them, which keeps the order. Of 16,000 digits after
-- the point the rest is one digit.
create function change_paths(paths text) returns jsonb language plpgsql immutable parallel unsafe cost 100 as $$
declare
  plain constant text := case when strpos(paths, '\u') > 0 then plain_json(paths) else paths end;
begin
  begin
    return plain::jsonb;
  exception when numeric_value_out_of_range then
    -- the same with numbers of a size that jsonb knows
    null;
  end;
  return (
    select string_agg(case
             when token ~ '^-?[0-9]' and (length(token) > 400 or token ~ '[eE][+-]?[0-9]{4}')
             then (select case when token ~ '^-' then '-' else '' end || bounded.number
               from regexp_match(token, '^-?([0-9]+)(?:\.([0-9]+))?(?:[eE][+]?(-?)0*([0-9]*))?$') as parts (written)
               cross join lateral (
                 select written[1] || coalesce(written[2], '') as digits, length(written[1]) as whole,
                        (coalesce(written[3], '') || case
                          when length(written[4]) > 2000 then repeat('9', 2000)
                          else coalesce(nullif(written[4], ''), '0')
                        end)::numeric as exponent
               ) as read
               cross join lateral (
                 select rtrim(ltrim(digits, '0'), '0') as digits,
                        whole + exponent - length(digits) + length(ltrim(digits, '0')) as power
               -- the number is 0.digits * 10 ^ power
               ) as size
               cross join lateral (
                 select case
                   when size.digits = '' then '0'
                   when power > 10001 then (1e10002 + power + ('0.' || left(size.digits, 16000))::numeric)::text
                   when power < -9998
                     then (1e-10001 + (power + ('0.' || left(size.digits, 3000))::numeric) * 1e-13000)::text
                   when length(size.digits) - power > 16000
                     then '0.' || left(size.digits, (power + 16000)::integer) || '1e' || power
                   else '0.' || size.digits || 'e' || power end as number
               ) as bounded)
             else token end, '' order by place)
      from (
        select found.token[1] as token, found.place
          from regexp_matches(plain, '"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|[^"0-9-]+', 'g') with ordinality
            as found (token, place)
      ) as tokens
  )::jsonb;
end
$$;
