-- change_page of one server, in PL/pgSQL: a worker plans the statement that it gets anew each time, and keeps the
-- plan of this one.
create function change_page(of_tenant text, now bigint, sinces bigint[], befores bigint[], selection_ends integer[],
                            actor_sets text[], kind_sets text[], skip bigint, size bigint, names_since xid8,
                              recent bigint,
                            lineage text)
returns table (page text) language plpgsql stable as $$
begin
  return query
    select coalesce(min(total)::text, '') || E'\x1e' || bool_and(current) || E'\x1e' || count(kind)
             || coalesce(string_agg(change_page_entry(at, kind, actor, entity_id, name, schema_version, related,
               paths), ''), '')
      from change_read(of_tenant, now, sinces, befores, selection_ends, actor_sets, kind_sets, skip, size,
        names_since, recent,
                       lineage);
end
$$;
