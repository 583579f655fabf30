-- Records a batch of changes (src/recording/store.ts): takes numbers for its rows and calls record_entries_numbered.
-- In a cluster, the coordinator gives the numbers and the tenant's worker records. The first parameter is not called
-- of_tenant, because calls of routines with that parameter are delegated to workers.
create function record_entries(for_tenant text, now bigint, entries change_input[], batch change_batch)
returns table (horizon bigint, complete boolean, at bigint, identity uuid, has_erased boolean)
language plpgsql as $$
declare
  -- for each entry, kind and actor, the recorder and the delta
  numbers constant bigint[] := record_numbers(
    cardinality(entries) + cardinality(batch.kind_lookups) + cardinality(batch.actor_lookups) + 2);
begin
  return query
    select recorded.horizon, recorded.complete, recorded.at, recorded.identity, recorded.has_erased
      from record_entries_numbered(for_tenant, now, entries, batch, numbers) as recorded;
end
$$;
