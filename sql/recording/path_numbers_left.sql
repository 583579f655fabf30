-- The numbers of an entry, with that of the rest in the place of those for which there was no room. It reads no table.
create function path_numbers_left(numbers integer[], without_room integer[], rest integer) returns integer[]
language sql immutable parallel safe as $$
  select array(select distinct case when n = any (without_room) then rest else n end from unnest(numbers) as n);
$$;
