-- What a value sorts by, as bytes (contract 10): strings by code point, numbers by value, booleans, arrays, objects,
-- and null or missing last; for a descending sort all bytes are inverted. Of a string and of canonical JSON the first
-- 128 characters count. No key is the beginning of another.
create function :"schema".sort_key(value jsonb, descending boolean) returns bytea
language plpgsql immutable parallel safe cost 1000 as $$
declare
  key bytea;
  text_value text;
  number numeric;
  parts record;
begin
  case jsonb_typeof(value)
    when 'string' then
      text_value := value #>> '{}';
      if strpos(text_value, U&'\0001') = 0 then
        text_value := left(text_value, 128);
      else
        text_value := substring(text_value from U&'^(?:\0001.|[^\0001]){0,128}');
      end if;
      key := '\x10'::bytea || convert_to(text_value, 'UTF8') || '\x00'::bytea;
    when 'number' then
      number := (value #>> '{}')::numeric;
      if number = 0 then
        key := '\x21';
      else
        parts := :"schema".decimal_parts(number);
        -- Two digits a byte, each one more than it is, so that the zero byte at the end is less than any.
        text_value := translate(parts.digits, '0123456789', '123456789a');
        key := int4send(parts.exponent + 1000000)
          || decode(text_value || case when length(text_value) % 2 = 1 then '0' else '' end, 'hex') || '\x00'::bytea;
        key := case when number > 0 then '\x22'::bytea || key else '\x20'::bytea || :"schema".inverted_bytes(key) end;
      end if;
    when 'boolean' then
      key := case when value = 'true' then '\x31'::bytea else '\x30'::bytea end;
    when 'array' then
      key := '\x40'::bytea || convert_to(left(:"schema".canonical_json(value, 128), 128), 'UTF8') || '\x00'::bytea;
    when 'object' then
      key := '\x50'::bytea || convert_to(left(:"schema".canonical_json(value, 128), 128), 'UTF8') || '\x00'::bytea;
    else
      key := '\x60';
  end case;
  return case when descending then :"schema".inverted_bytes(key) else key end;
end
$$;
