-- Portions of the deltas that the next change_fold takes, the oldest first, of about `at_once` entries each: their
-- first and last delta. It blocks other folds of the tenant until the transaction ends, and returns none while one
-- runs. Call it first in the transaction of the fold.
create function change_fold_portions(of_tenant text, most bigint, at_once bigint)
returns table (first bigint, last bigint)
language plpgsql set plan_cache_mode = force_custom_plan set jit = off as $$
declare
  folded bigint := 0;
  entries bigint := 0;
  taking record;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('change_fold ' || of_tenant, 0)) then
    return;
  end if;
  for taking in
    select d.delta, cardinality(d.ats) as entries from change_delta d
      where d.tenant = of_tenant and d.position is not null order by d.delta
  loop
    first := coalesce(first, taking.delta);
    last := taking.delta;
    folded := folded + taking.entries;
    entries := entries + taking.entries;
    exit when folded >= most;
    if entries >= at_once then
      return next;
      first := null;
      entries := 0;
    end if;
  end loop;
  if first is not null then
    return next;
  end if;
end
$$;
