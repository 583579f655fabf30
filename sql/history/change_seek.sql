-- A checkpoint near the entry that has `wanted` newer ones in the selections: a moment, and how many entries are at or after
-- it (`newer`), which are no more than `wanted`. It is looked for between two moments whose ranks are known: as `moment` and
-- `newer` it is given the later one.
--
-- A guide tells where to look: the tallies of the one key, or those of the tenant, in which the entries of most selections
-- are spread alike. Each step guesses how many newer entries the guide has at the checkpoint, looks there, and counts.
create function change_seek(of_tenant text, actor_sets text[], kind_sets text[], wanted bigint,
                            oldest bigint, oldest_rank bigint, inout moment bigint, inout newer bigint)
language plpgsql stable as $$
declare
  actors constant bigint[] := actor_sets[1]::bigint[];
  kinds constant bigint[] := kind_sets[1]::bigint[];
  one_key constant boolean := cardinality(actor_sets) = 1 and cardinality(actors) = 1 and cardinality(kinds) <= 1
    and (actors = '{0}' or kinds = '{}');
  guide_actor constant bigint := case when one_key then actors[1] else 0 end;
  guide_kind constant bigint := case when one_key then coalesce(kinds[1], 0) else 0 end;
  -- what may be read entry by entry: the more keys there are, the more it costs to count instead
  few constant bigint := 400 + 15 * (cardinality(actors) + cardinality(kinds));
  margin constant bigint := case when one_key then 0 else few / 4 end;
  -- the guide's ranks of both moments, and how many of its entries a cell may have
  guide_newer bigint := newer;
  guide_oldest bigint := oldest_rank;
  cell bigint := few / 2;
  step integer := 0;
  guess bigint;
  found bigint;
  found_guide bigint;
  found_rank bigint;
begin
  if not one_key then
    guide_newer := change_tallied(of_tenant, moment);
    guide_oldest := change_tallied(of_tenant, oldest);
    cell := cell * greatest(guide_oldest - guide_newer, 1) / greatest(oldest_rank - newer, 1);
  end if;
  while wanted - newer > few and guide_oldest - guide_newer > few / 4 loop
    step := step + 1;
    guess := (guide_newer + guide_oldest) / 2;
    if step <= 4 or step % 2 = 1 then
      guess := guide_newer + ((guide_oldest - guide_newer)::float8 / (oldest_rank - newer)
                              * greatest(wanted - newer - margin, 0))::bigint;
    end if;
    select d.moment, d.newer into found, found_guide
      from change_descend(of_tenant, guide_actor, guide_kind, least(guess, guide_oldest - 1), cell) d;
    if found >= moment or found <= oldest then
      -- the cell is too long to come any nearer
      exit when cell = 0;
      cell := cell / 16;
      continue;
    end if;
    found_rank := (change_rank(of_tenant, actor_sets, kind_sets, array[found]))[1];
    if found_rank <= wanted then
      moment := found;
      newer := found_rank;
      guide_newer := found_guide;
    else
      oldest := found;
      oldest_rank := found_rank;
      guide_oldest := found_guide;
    end if;
  end loop;
end
$$;
