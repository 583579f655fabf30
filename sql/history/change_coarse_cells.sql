-- The cells of level 0 that have tallies and are, as a whole or in part, in [since, before); without an end where `before` is null.
create function change_coarse_cells(of_tenant text, since bigint, before bigint) returns setof bigint language sql stable as $$
  select t.bucket from change_tally t
    where t.tenant = of_tenant and t.level = 0 and t.actor = 0 and t.kind = 0
      and t.bucket >= since / 88473600000 and t.bucket <= (coalesce(before, 9223372036854775807) - 1) / 88473600000
$$;
