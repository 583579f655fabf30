-- The rows of change_read_paths as one text, as change_page has those of change_read.
create function change_page_paths(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[],
                                  actors bigint[], entities text[], names_like text[], skip bigint, size bigint,
                                  max_total bigint, names_since xid8, recent bigint, lineage text)
returns table (page text) language plpgsql stable as $$
begin
  return query
    select coalesce(min(total)::text, '') || E'\x1e' || bool_and(current) || E'\x1e' || count(kind)
             || coalesce(string_agg(
                  change_page_entry(at, kind, actor, entity_id, name, schema_version, related, paths, erased,
                                    correlation_id),
                  ''), '')
      from change_read_paths(of_tenant, now, since, before, kinds, actors, entities, names_like, skip, size,
                             max_total, names_since, recent, lineage);
end
$$;
