-- Identifies the state of the database in which the ids of kinds and actors, and the numbers of folds, are valid. It
-- differs after the database was set back to an earlier state, which takes a restart of its server or new tables. A
-- reset of transaction ids rebuilds the index.
create function change_lineage(of_tenant text) returns text language sql stable as
  $$ select extract(epoch from pg_postmaster_start_time()) || ' ' || 'change_actor_registered'::regclass::oid $$;
