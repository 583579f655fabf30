-- Records a batch of changes (src/recording/store.ts): takes the numbers for its rows, and leaves the rest to
-- record_entries_numbered. In a cluster the coordinator does the first and the tenant's worker the second. The name of
-- the first parameter says so: Annals leaves to workers the routines whose first parameter is of_tenant.
create function record_entries(
  for_tenant text, now bigint,
  kind_lookups uuid[], kind_entities text[], kind_types text[], kind_related_entities text[],
  actor_lookups uuid[], actor_names text[],
  entry_ats bigint[], entry_kinds integer[], entry_actors integer[], entry_documents uuid[], entry_identities uuid[],
  entry_ids text[], entry_names text[], entry_schema_versions text[], entry_related text[], entry_paths text[],
  entry_marks text[], entry_contexts text[],
  related_of integer[], related_items integer[], related_documents uuid[], related_entities text[], related_ids text[],
  entry_path_numbers text[],
  path_numbers integer[], path_entities text[], path_names text[], path_rest integer,
  way text, recorder_lookup uuid, recorder_name text, recorder_issuer text, recorder_subject text
) returns table (horizon bigint, complete boolean, at bigint, identity uuid, has_erased boolean)
language plpgsql as $$
declare
  -- for each entry, kind and actor, the recorder and the delta
  numbers constant bigint[] :=
    record_numbers(cardinality(entry_ats) + cardinality(kind_lookups) + cardinality(actor_lookups) + 2);
begin
  return query
    select recorded.horizon, recorded.complete, recorded.at, recorded.identity, recorded.has_erased
      from record_entries_numbered(
        for_tenant, now, kind_lookups, kind_entities, kind_types, kind_related_entities, actor_lookups, actor_names,
        entry_ats, entry_kinds, entry_actors, entry_documents, entry_identities, entry_ids, entry_names,
        entry_schema_versions, entry_related, entry_paths, entry_marks, entry_contexts, related_of, related_items,
        related_documents, related_entities, related_ids, entry_path_numbers, path_numbers, path_entities, path_names,
        path_rest, way, recorder_lookup, recorder_name, recorder_issuer, recorder_subject, numbers) as recorded;
end
$$;
