-- A number as RFC 8785 writes it, but exactly: digits that a double would lose are kept.
create function :"schema".canonical_number(number numeric) returns text
language plpgsql immutable parallel safe as $$
declare
  parts record := :"schema".decimal_parts(number);
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
