-- A field of a CSV file (RFC 4180), always quoted. A spreadsheet would run what begins like a formula; with an
-- apostrophe before it, it is text.
create function csv_field(value text) returns text language sql immutable parallel safe as $$
  -- = + - @, tab, line feed, carriage return, and the wide forms of the first four
  select case when ascii(value) in (61, 43, 45, 64, 9, 10, 13, 65309, 65291, 65293, 65312) then '"''' else '"' end
    || replace(value, '"', '""') || '"'
$$;
