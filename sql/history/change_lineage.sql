-- Where the numbers of kinds and actors, and those of folds, mean the same: another one after the database was put
-- back to what it was before, for which its server has to be started anew or its tables to be made anew. A reset of
-- transaction ids makes the index anew.
create function change_lineage(of_tenant text) returns text language sql stable as
  $$ select extract(epoch from pg_postmaster_start_time()) || ' ' || 'change_actor_registered'::regclass::oid $$;
