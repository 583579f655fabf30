-- Custom entities, and what sorting and paging need of the database. docs/decisions/0006-custom-entities-and-pagination.md
-- tells why it is laid out like this.

-- Documents are kept twice: as the JSON text they came in, and projected to jsonb for filters and sorting. jsonb has no
-- U+0000, so in the projection U+0001 U+0001 stands for it and U+0001 U+0002 for U+0001, which keeps every order.

-- An index is built, and analysed, with a search path that has nothing of ours in it, so these functions name each
-- other with their schema, whichever it is.
do $migration$
begin
  execute replace($functions$

-- A number taken apart: it is 0.DIGITS * 10^exponent, with no zeros at either end of the digits; none for zero.
create function HERE.decimal_parts(number numeric, out digits text, out exponent integer)
language plpgsql immutable parallel safe as $$
declare
  plain text := abs(number)::text;
  whole text := split_part(plain, '.', 1);
  fraction text := split_part(plain, '.', 2);
begin
  if whole = '0' then
    digits := ltrim(fraction, '0');
    exponent := length(digits) - length(fraction);
  else
    digits := whole || fraction;
    exponent := length(whole);
  end if;
  digits := rtrim(digits, '0');
end
$$;

create function HERE.inverted_bytes(bytes bytea) returns bytea language sql immutable strict parallel safe as $$
  select decode(translate(encode(bytes, 'hex'), '0123456789abcdef', 'fedcba9876543210'), 'hex')
$$;

-- A number as RFC 8785 writes it, but exactly: digits that a double would lose are kept.
create function HERE.canonical_number(number numeric) returns text
language plpgsql immutable parallel safe as $$
declare
  parts record := HERE.decimal_parts(number);
  digits text := parts.digits;
  point integer := parts.exponent;
  sign text := case when number < 0 then '-' else '' end;
begin
  if number = 0 then
    return '0';
  elsif length(digits) <= point and point <= 21 then
    return sign || rpad(digits, point, '0');
  elsif point between 1 and 21 then
    return sign || left(digits, point) || '.' || substr(digits, point + 1);
  elsif point between -5 and 0 then
    return sign || '0.' || repeat('0', -point) || digits;
  end if;
  return sign || left(digits, 1) || case when length(digits) > 1 then '.' || substr(digits, 2) else '' end
    || 'e' || case when point > 0 then '+' else '' end || point - 1;
end
$$;

-- A string of the projection as canonical JSON, in which what stands for U+0000 and U+0001 is written as those.
create function HERE.canonical_string(value text) returns text
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

-- The beginning, `wanted` characters or more, of the canonical JSON of a value: keys by code point, no blanks.
create function HERE.canonical_json(value jsonb, wanted integer) returns text
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
        result := result || case when result = '{' then '' else ',' end || HERE.canonical_string(left(member.key, 256)) || ':';
        result := result || HERE.canonical_json(member.value, wanted - length(result));
      end loop;
      return result || '}';
    when 'array' then
      result := '[';
      -- An element and its comma are two characters at least.
      for member in select element from jsonb_array_elements(value) element limit wanted / 2 + 1 loop
        exit when length(result) >= wanted;
        result := result || case when result = '[' then '' else ',' end;
        result := result || HERE.canonical_json(member.element, wanted - length(result));
      end loop;
      return result || ']';
    when 'string' then
      return HERE.canonical_string(left(value #>> '{}', 256));
    when 'number' then
      return HERE.canonical_number((value #>> '{}')::numeric);
    else
      return value::text;
  end case;
end
$$;

-- What a value sorts by, as bytes (contract 10): strings by code point, numbers by value, booleans, arrays, objects,
-- and null or missing last; for a descending sort all bytes are inverted. Of a string and of canonical JSON the first
-- 128 characters count. No key is the beginning of another.
create function HERE.sort_key(value jsonb, descending boolean) returns bytea
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
        parts := HERE.decimal_parts(number);
        -- Two digits a byte, each one more than it is, so that the zero byte at the end is less than any.
        text_value := translate(parts.digits, '0123456789', '123456789a');
        key := int4send(parts.exponent + 1000000)
          || decode(text_value || case when length(text_value) % 2 = 1 then '0' else '' end, 'hex') || '\x00'::bytea;
        key := case when number > 0 then '\x22'::bytea || key else '\x20'::bytea || HERE.inverted_bytes(key) end;
      end if;
    when 'boolean' then
      key := case when value = 'true' then '\x31'::bytea else '\x30'::bytea end;
    when 'array' then
      key := '\x40'::bytea || convert_to(left(HERE.canonical_json(value, 128), 128), 'UTF8') || '\x00'::bytea;
    when 'object' then
      key := '\x50'::bytea || convert_to(left(HERE.canonical_json(value, 128), 128), 'UTF8') || '\x00'::bytea;
    else
      key := '\x60';
  end case;
  return case when descending then HERE.inverted_bytes(key) else key end;
end
$$;

$functions$, 'HERE.', quote_ident(current_schema()) || '.');
end
$migration$;

create table custom_entity (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  json_schema text collate "C",
  primary key (tenant, id)
);

create table custom_instance (
  tenant text collate "C" not null,
  type text collate "C" not null,
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  primary key (tenant, type, id),
  foreign key (tenant, type) references custom_entity (tenant, id)
);
