-- Notes in deltas the position of their first entry, `begin_at` and what of `befores` is for the delta, and answers how
-- many it found without one. It goes to their places (ctid) and uses no index, which may have many entries of a tenant
-- that nobody could remove yet. `deltas` are in ascending order.
create function change_position_mark(
  of_tenant text, begin_at bigint, deltas bigint[], befores bigint[], places tid[]
) returns bigint
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_indexscan = off
set enable_bitmapscan = off set jit = off as $$
declare
  marked bigint;
begin
  update change_delta d set position = begin_at + befores[width_bucket(d.delta, deltas)]
    where d.tenant = of_tenant and d.ctid = any (places) and d.position is null;
  get diagnostics marked = row_count;
  return marked;
end
$$;
