-- change_lineage of one server. It also differs after the tenant has moved to another worker: the transaction ids of
-- its names are then those of two servers.
create function change_lineage(of_tenant text) returns text language plpgsql stable as $$
begin
  return extract(epoch from pg_postmaster_start_time()) || ' ' || 'change_actor'::regclass::oid || ' '
    || change_placement(of_tenant)::text;
end
$$;
