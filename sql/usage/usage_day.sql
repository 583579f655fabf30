-- The UTC day of a moment, as days since 1970.
create function usage_day(moment timestamptz) returns integer language sql immutable as $$
  select floor(extract(epoch from moment) / 86400)::integer
$$;
