-- A random number, drawn for each position: a restored copy of the database draws different ones.
create function change_position_fingerprint() returns integer language sql volatile as $$
  select ('x' || left(gen_random_uuid()::text, 8))::bit(32)::integer
$$;
