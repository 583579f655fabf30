-- The history of documents that are named one by one, of what is related to such documents, of documents whose ids are
-- like `ids_like`, from `ids_from` up to `ids_before`, or of entries with one of `terms` (entry_terms) whose
-- correlation id, or member `context_name` of the context, is one of `texts`. In [since, before), as change_read
-- answers it. Null stands for any: kinds, actors, and the entity types of the related items; ids are those of kinds.
-- The total is null where more than 20,000 entries have such ids: then there may be a better way to read them.
create function change_read_documents(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[],
                                      actors bigint[], documents uuid[], related_documents uuid[],
                                      related_entities text[], ids_from text, ids_before text, ids_like text,
                                      terms integer[], texts text[], context_name text, skip bigint, size bigint,
                                      names_since xid8, recent bigint, lineage text)
returns table (total bigint, current boolean, at bigint, kind bigint, actor bigint, entity_id text,
               name text, schema_version text, related text, paths text, erased text, correlation_id text)
language plpgsql stable
-- a row is found by its time and number: to sort what another index finds by the time alone would read all entries of
-- the moment, for each row
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
set enable_sort = off set enable_incremental_sort = off as $$
#variable_conflict use_column
declare
  max_by_ids constant bigint := 20000;
  last_moment constant bigint := coalesce(before, 9223372036854775807);
  first_moment bigint;
  -- where the entries of the page stand
  ats bigint[];
  sequences bigint[];
begin
  select greatest(since, s.horizon), s.current into first_moment, current
    from change_snapshot(of_tenant, now, names_since, recent, lineage) s;
  if related_documents is null and cardinality(documents) = 1 and actors is null then
    -- The usual query. The index of documents has the kinds, so it alone counts, and finds the places of the page. It
    -- has no actors: a condition on them, even one that is null, would read each entry of the document.
    total := (
      select count(*) from change_entry one
        where one.tenant = of_tenant and one.document = documents[1]
          and one.at >= first_moment and one.at < last_moment and (kinds is null or one.kind = any (kinds)));
    select array_agg(place.at), array_agg(place.sequence) into ats, sequences
      from (
        select one.at, one.sequence from change_entry one
          where one.tenant = of_tenant and one.document = documents[1]
            and one.at >= first_moment and one.at < last_moment and (kinds is null or one.kind = any (kinds))
          order by one.at desc, one.sequence desc offset skip limit size
      ) as place;
  elsif terms is not null then
    -- Planned with the numbers themselves: statistics tell how frequent they are. A generic plan would combine their
    -- index with all that another one has of the window.
    execute format($statement$
      with found as materialized (
        select e.at, e.sequence from change_entry e
          where e.tenant = $1 and e.at >= $2 and e.at < $3
            and (e.correlation is not null or e.correlation_text is not null or e.context is not null)
            and entry_terms(e.tenant, e.correlation, e.correlation_text, e.context) && %L::integer[]
            and case when $4 is null then coalesce(e.correlation::text, e.correlation_text)
                  else change_context_text(e.context, $4) end = any ($5)
            and ($6 is null or e.kind = any ($6)) and ($7 is null or e.actor = any ($7))
      )
      select counted.total, page.ats, page.sequences
        from (select count(*) as total from found) as counted
        cross join (
          select array_agg(place.at) as ats, array_agg(place.sequence) as sequences
            from (select * from found order by at desc, sequence desc offset $8 limit $9) as place
        ) as page$statement$, terms)
      into total, ats, sequences
      using of_tenant, first_moment, last_moment, context_name, texts, kinds, actors, skip, size;
  else
    with found as materialized (
      select e.at, e.sequence from change_entry e
        where e.tenant = of_tenant and e.document = any (documents) and e.at >= first_moment and e.at < last_moment
          and (kinds is null or e.kind = any (kinds)) and (actors is null or e.actor = any (actors))
      union all
      select place.at, place.sequence
        from (
          select distinct r.at, r.sequence from change_related r
            where r.tenant = of_tenant and r.document = any (related_documents) and r.at >= first_moment
              and r.at < last_moment
              and (related_entities is null or r.entity = any (related_entities))
        ) as place
        where kinds is null and actors is null or exists (
          select from (
            select one.kind, one.actor from change_entry one
              where one.tenant = of_tenant and (one.at, one.sequence) >= (place.at, place.sequence)
                and (one.at, one.sequence) <= (place.at, place.sequence)
              order by one.at, one.sequence limit 1
          ) as e
          where (kinds is null or e.kind = any (kinds)) and (actors is null or e.actor = any (actors)))
      union all
      (select e.at, e.sequence
         from unnest(case when ids_from is not null then kinds end) as of (kind)
         cross join lateral (
           -- fenced, and in the order of the index that is meant, which alone answers
           (select one.at, one.sequence, one.actor from change_entry one
              where one.tenant = of_tenant and one.kind = of.kind and octet_length(one.entity_id) <= change_short_id()
                and one.entity_id >= ids_from and one.entity_id < ids_before and one.entity_id like ids_like
                and one.at >= first_moment and one.at < last_moment
              order by one.entity_id, one.at, one.sequence offset 0)
           union all
           (select one.at, one.sequence, one.actor from change_entry one
              where one.tenant = of_tenant and one.kind = of.kind and octet_length(one.entity_id) > change_short_id()
                and one.entity_id like ids_like and one.at >= first_moment and one.at < last_moment
              order by one.at, one.sequence offset 0)
         ) as e
         where actors is null or e.actor = any (actors)
         limit max_by_ids + 1)
    )
    select counted.total, page.ats, page.sequences into total, ats, sequences
      from (
        select case when ids_from is null or count(*) <= max_by_ids then count(*) end as total from found
      ) as counted
      cross join (
        select array_agg(place.at) as ats, array_agg(place.sequence) as sequences
          from (select * from found order by at desc, sequence desc offset skip limit size) as place
      ) as page;
  end if;
  return query
    select total, current, e.at, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths,
           e.erased, coalesce(e.correlation::text, e.correlation_text)
      from (select) as answer
      left join lateral (
        select one.* from unnest(ats, sequences) as place (at, sequence)
          cross join lateral (
            select entry.* from change_entry entry
              where entry.tenant = of_tenant and (entry.at, entry.sequence) >= (place.at, place.sequence)
                and (entry.at, entry.sequence) <= (place.at, place.sequence)
              order by entry.at, entry.sequence limit 1
          ) as one
      ) as e on true
      order by e.at desc, e.sequence desc;
end
$$;
