-- As on one server, with literals: the cluster sends a worker the types of all parameters of a statement, and cannot
-- name those of our own types. It writes the arguments of a delegated call as literals anyway.
create function record_entries(for_tenant text, now bigint, entries change_input[], batch change_batch)
returns table (horizon bigint, complete boolean, at bigint, identity uuid, has_erased boolean)
language plpgsql as $$
declare
  numbers constant bigint[] := record_numbers(
    cardinality(entries) + cardinality(batch.kind_lookups) + cardinality(batch.actor_lookups) + 2);
begin
  return query execute format(
    'select * from record_entries_numbered(%L, %s, %L, %L, %L)', for_tenant, now, entries, batch, numbers);
end
$$;
