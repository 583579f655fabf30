-- The first moment whose history a tenant still keeps in the snapshot, and whether the snapshot has only the names that
-- were read before, as many as `recent` registered by transactions from `names_since` on.
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
