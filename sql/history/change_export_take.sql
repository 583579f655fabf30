-- Takes lines from an open cursor (line, at, sequence, path) until they have `most` bytes together: one answer has one
-- piece of the file, whether its lines have a hundred bytes or a hundred million. The first line of an entry has the
-- path 0 or 1. No row: the cursor is at its end.
create function change_export_take(source refcursor, most bigint, out lines text, out entries integer,
                                   out last_at bigint, out last_sequence bigint, out last_path bigint)
returns setof record language plpgsql as $$
declare
  line text;
  line_at bigint;
  line_sequence bigint;
  line_path bigint;
  parts text[] := '{}';
  size bigint := 0;
begin
  entries := 0;
  while size < most loop
    fetch source into line, line_at, line_sequence, line_path;
    exit when not found;
    parts := array_append(parts, line);
    size := size + octet_length(line);
    if line_path <= 1 then
      entries := entries + 1;
    end if;
    last_at := line_at;
    last_sequence := line_sequence;
    last_path := line_path;
  end loop;
  if last_at is not null then
    lines := array_to_string(parts, '');
    return next;
  end if;
end
$$;
