-- A moment with at most `skip` entries of one key at or after it, and their number (`newer`): the end of the coarsest
-- cell with at most `few` of the key's entries that has the entry with `skip` newer ones, or of a finest one. Null if
-- the tallies have no more than `skip` entries of the key.
--
-- The key is an actor, a kind or (0, 0) the tenant. It reads only the tallies of this key, one a level by the primary
-- key.
create function change_descend(of_tenant text, of_actor bigint, of_kind bigint, skip bigint, few bigint,
                               out moment bigint, out newer bigint)
language plpgsql stable as $$
declare
  cell bigint;
  entries bigint;
  parts bigint;
  children smallint[];
  upto bigint[];
  place integer;
begin
  newer := 0;
  for cell, entries in
    select t.bucket, t.upto[cardinality(t.upto)] from change_tally t
      where t.tenant = of_tenant and t.level = 0 and t.actor = of_actor and t.kind = of_kind order by t.bucket desc
  loop
    exit when skip < newer + entries;
    newer := newer + entries;
    cell := null;
  end loop;
  if cell is null then
    return;
  end if;
  for depth in 0..4 loop
    select t.children, t.upto into children, upto from change_tally t
      where t.tenant = of_tenant and t.level = depth and t.bucket = cell and t.actor = of_actor and t.kind = of_kind;
    -- sparser than what has a tally
    exit when not found;
    -- of the cell's entries, oldest first, it has newer + entries - skip - 1 before it
    place := width_bucket(newer + entries - skip - 1, upto) + 1;
    newer := newer + entries - upto[place];
    entries := upto[place] - coalesce(upto[place - 1], 0);
    parts := change_cell(depth) / change_cell(depth + 1);
    cell := cell * parts + children[place];
    moment := (cell + 1) * change_cell(depth + 1);
    exit when entries <= few;
  end loop;
end
$$;
