-- The rows of change_read_documents as one text, as change_page has those of change_read.
create function change_page_documents(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[],
                                      actors bigint[], documents uuid[], related_documents uuid[],
                                      related_entities text[], ids_from text, ids_before text, ids_like text,
                                      terms integer[], texts text[], context_name text, skip bigint, size bigint,
                                      names_since xid8, recent bigint, lineage text)
returns table (page text) language plpgsql stable as $$
begin
  return query
    select coalesce(min(total)::text, '') || E'\x1e' || bool_and(current) || E'\x1e' || count(kind)
             || coalesce(string_agg(
                  change_page_entry(at, kind, actor, entity_id, name, schema_version, related, paths, erased,
                                    correlation_id),
                  ''), '')
      from change_read_documents(of_tenant, now, since, before, kinds, actors, documents, related_documents,
                                 related_entities, ids_from, ids_before, ids_like, terms, texts, context_name, skip,
                                 size, names_since, recent, lineage);
end
$$;
