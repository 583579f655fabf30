-- Waits until no fold of the tenant runs, and blocks new ones until the transaction ends. A fold with an older snapshot
-- then restarts. Call it in a read committed transaction. It reads one row by its key, so it forces no plan.
create function change_fold_lock(of_tenant text) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('change_fold ' || of_tenant, 0));
  insert into change_folded as so_far (tenant, folds) values (of_tenant, 1)
    on conflict (tenant) do update set folds = so_far.folds + 1;
end
$$;
