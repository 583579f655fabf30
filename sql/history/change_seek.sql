-- A checkpoint near the entry of some selections (see change_total) that has `wanted` newer ones before `before`: a
-- moment, and how many entries are from it on (`newer`), which are no more than `wanted`. There are `total` entries
-- in [oldest, before).
--
-- A guide says where to look: the tallies of the one key, or those of the tenant, in which the entries of most
-- selections are spread alike. Each step guesses how many newer entries the guide has at the checkpoint, looks there
-- (change_descend), and counts (change_total). It reads nothing itself.
create function change_seek(of_tenant text, actor_sets text[], kind_sets text[], wanted bigint, oldest bigint,
                            before bigint, total bigint, out moment bigint, out newer bigint)
language plpgsql stable as $$
declare
  actors constant bigint[] := actor_sets[1]::bigint[];
  kinds constant bigint[] := kind_sets[1]::bigint[];
  one_key constant boolean := cardinality(actor_sets) = 1 and cardinality(actors) = 1 and cardinality(kinds) <= 1
    and (actors = '{0}' or kinds = '{}');
  guide_actor constant bigint := case when one_key then actors[1] else 0 end;
  guide_kind constant bigint := case when one_key then coalesce(kinds[1], 0) else 0 end;
  guide_actors constant text[] := case when one_key then actor_sets else '{"{0}"}' end;
  guide_kinds constant text[] := case when one_key then kind_sets else '{"{0}"}' end;
  -- what may be read entry by entry: the more keys there are, the more it costs to count instead
  few constant bigint := 400 + 15 * (cardinality(actors) + cardinality(kinds));
  margin constant bigint := case when one_key then 0 else few / 4 end;
  -- the entries from the other moment on that is known, and of both moments the guide's newer ones, those after
  -- `before` too
  total_newer bigint := total;
  guide_newer bigint :=
    case when before is null then 0 else change_total(of_tenant, guide_actors, guide_kinds, before, null) end;
  guide_oldest bigint;
  -- how many entries of the guide a cell may have
  cell bigint := few / 2;
  step integer := 0;
  guess bigint;
  found bigint;
  found_guide bigint;
  found_newer bigint;
begin
  moment := coalesce(before, 9223372036854775807);
  newer := 0;
  guide_oldest := guide_newer
    + case when one_key then total else change_total(of_tenant, guide_actors, guide_kinds, oldest, before) end;
  if not one_key then
    cell := cell * greatest(guide_oldest - guide_newer, 1) / greatest(total, 1);
  end if;
  while wanted - newer > few and guide_oldest - guide_newer > few / 4 loop
    step := step + 1;
    guess := (guide_newer + guide_oldest) / 2;
    if step <= 4 or step % 2 = 1 then
      guess := guide_newer + ((guide_oldest - guide_newer)::float8 / (total_newer - newer)
                              * greatest(wanted - newer - margin, 0))::bigint;
    end if;
    select d.moment, d.newer into found, found_guide
      from change_descend(of_tenant, guide_actor, guide_kind, least(guess, guide_oldest - 1), cell) d;
    -- more than the tallies have: the rest is not folded yet
    exit when found is null;
    if found >= moment or found <= oldest then
      -- the cell is too long to come any nearer
      exit when cell = 0;
      cell := cell / 16;
      continue;
    end if;
    found_newer := change_total(of_tenant, actor_sets, kind_sets, found, before);
    if found_newer <= wanted then
      moment := found;
      newer := found_newer;
      guide_newer := found_guide;
    else
      oldest := found;
      total_newer := found_newer;
      guide_oldest := found_guide;
    end if;
  end loop;
end
$$;
