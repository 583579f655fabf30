-- change_snapshot of one server, in PL/pgSQL: a cluster refuses parameters in functions of language SQL that read
-- tables.
create function change_snapshot(of_tenant text, now bigint, names_since xid8, recent bigint, lineage text)
returns table (horizon bigint, current boolean) language plpgsql stable as $$
begin
  horizon := change_horizon(of_tenant, now);
  current := lineage = change_lineage(of_tenant) and (names_since is null or recent =
    (select count(*) from change_kind n where n.tenant = of_tenant and n.registered >= names_since)
    + (select count(*) from change_actor n where n.tenant = of_tenant and n.registered >= names_since));
  return next;
end
$$;
