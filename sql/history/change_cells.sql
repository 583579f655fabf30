-- The cells that a moment is in, one a level, as far as it is not where the cell begins: the level above then has the
-- whole of it. `child` is the place of the moment's part, which ends at `before`.
create function change_cells(moment bigint)
returns table (depth integer, bucket bigint, child smallint, before bigint, whole boolean) language sql stable as $$
  select level.depth, moment / level.cell, ((moment % level.cell) / level.part)::smallint,
         (moment / level.part + 1) * level.part, moment % level.part = 0
    from (values (0, 88473600000, 2764800000), (1, 2764800000, 86400000), (2, 86400000, 3600000), (3, 3600000, 60000),
                 (4, 60000, 1000)) as level (depth, cell, part)
    where level.depth = 0 or moment % level.cell <> 0
$$;
