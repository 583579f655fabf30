-- Stores in deltas the position of their first entry, `begin_at` plus the delta's element of `befores`, and returns
-- how many it found without one. It reads their places (ctid) without an index, which may have many dead entries of a
-- tenant. `deltas` are in ascending order.
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
