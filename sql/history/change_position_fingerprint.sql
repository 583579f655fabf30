-- A random number, given with positions: a copy of the database that goes on by itself gives other ones.
create function change_position_fingerprint() returns integer language sql volatile as $$
  select ('x' || left(gen_random_uuid()::text, 8))::bit(32)::integer
$$;
