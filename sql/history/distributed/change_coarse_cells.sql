-- change_coarse_cells of one server, in PL/pgSQL: see change_snapshot.
create function change_coarse_cells(of_tenant text, since bigint, before bigint) returns setof bigint language plpgsql stable as $$
begin
  return query
    select t.bucket from change_tally t
      where t.tenant = of_tenant and t.level = 0 and t.actor = 0 and t.kind = 0
        and t.bucket >= since / 88473600000 and t.bucket <= (coalesce(before, 9223372036854775807) - 1) / 88473600000;
end
$$;
