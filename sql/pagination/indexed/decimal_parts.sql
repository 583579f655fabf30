-- A number taken apart: it is 0.DIGITS * 10^exponent, with no zeros at either end of the digits; none for zero.
create function :"schema".decimal_parts(number numeric, out digits text, out exponent integer)
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
