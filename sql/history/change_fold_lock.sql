-- Waits until no fold of the tenant is at work, and keeps others from beginning until the transaction ends. A fold with
-- a snapshot from before that begins again. To be called in a transaction that is read committed. It reads one row by
-- its key, so it forces no plan.
create function change_fold_lock(of_tenant text) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('change_fold ' || of_tenant, 0));
  insert into change_folded as so_far (tenant, folds) values (of_tenant, 1)
    on conflict (tenant) do update set folds = so_far.folds + 1;
end
$$;
