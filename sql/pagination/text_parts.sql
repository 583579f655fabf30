-- A text in parts of at most so many bytes, cut between characters. The driver of the service gathers a row before it
-- reads it, and a string of a megabyte stays in memory until a full garbage collection; small rows leave no such trace.
create function text_parts(value text, most integer) returns setof text language plpgsql immutable parallel safe as $$
declare
  bytes bytea := convert_to(value, 'UTF8');
  length integer := octet_length(bytes);
  start integer := 0;
  ending integer;
begin
  while start < length loop
    ending := least(start + most, length);
    -- A byte of the form 10xxxxxx continues the character before it.
    while ending < length and get_byte(bytes, ending) & 192 = 128 loop
      ending := ending - 1;
    end loop;
    return next convert_from(substring(bytes from start + 1 for ending - start), 'UTF8');
    start := ending;
  end loop;
end;
$$;
