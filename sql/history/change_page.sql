-- The rows of change_read as one text (docs/decisions/requests.md): the total, empty if the statement gave up,
-- whether the snapshot has no names that the dictionary lacks, the number of entries, and the parts of each entry, with
-- U+001E between all of them. JSON texts cannot contain that character. A row without an entry has no `at`, so its
-- parts are null and left out.
create function change_page(of_tenant text, now bigint, sinces bigint[], befores bigint[], selection_ends integer[],
                            actor_sets text[], kind_sets text[], skip bigint, size bigint, names_since xid8,
                            recent bigint, lineage text)
returns table (page text) language plpgsql stable as $$
begin
  return query
    select coalesce(min(total)::text, '') || E'\x1e' || bool_and(current) || E'\x1e' || count(kind)
             || coalesce(string_agg(
                  change_page_entry(at, kind, actor, entity_id, name, schema_version, related, paths, erased,
                                    correlation_id),
                  ''), '')
      from change_read(of_tenant, now, sinces, befores, selection_ends, actor_sets, kind_sets, skip, size,
                       names_since, recent, lineage);
end
$$;
