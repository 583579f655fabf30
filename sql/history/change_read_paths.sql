-- The history of entries with a path whose name is like one of some texts, in [since, before), as change_read answers
-- it. Null stands for any: kinds, actors, and the entity types of the paths. The total is null where numbers of paths
-- do not decide alone (docs/decisions/finding.md), or there are too many: then entries are to be read, in several
-- statements.
create function change_read_paths(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[],
                                  actors bigint[], entities text[], names_like text[], skip bigint, size bigint,
                                  names_since xid8, recent bigint, lineage text)
returns table (total bigint, current boolean, at bigint, kind bigint, actor bigint, entity_id text,
               name text, schema_version text, related text, paths text, erased text)
language plpgsql stable
-- a row is found by its time and number: see change_read_documents
set jit = off set random_page_cost = '1.1' set enable_sort = off set enable_incremental_sort = off as $$
#variable_conflict use_column
declare
  -- lists of numbers: see the service's conditions on paths
  max_lists constant integer := 64;
  first_moment bigint;
  lists text[];
  is_told boolean;
  -- where the entries of the page stand
  ats bigint[];
  sequences bigint[];
begin
  select greatest(since, s.horizon), s.current into first_moment, current
    from change_snapshot(of_tenant, now, names_since, recent, lineage) s;
  select array_agg(distinct format('e.path_numbers && ''{%s}''::integer[]', n.number))
           filter (where n.number is not null),
         coalesce(not bool_or(n.is_shared or n.entity = '' or n.unnumbered_to is not null), true)
    into lists, is_told
    from change_path_names(of_tenant, entities, names_like, false) n;
  if is_told and lists is null then
    total := 0;
  elsif is_told and cardinality(lists) <= max_lists then
    -- The planner sees how many entries each number has: of one value for all it would not.
    execute format($statement$
      with found as materialized (
        select e.at, e.sequence from change_entry e
          where e.tenant = $1 and e.at >= $2 and e.at < $3 and ($4 is null or e.kind = any ($4))
            and ($5 is null or e.actor = any ($5)) and (%s)
      )
      select counted.total, page.ats, page.sequences
        from (select count(*) as total from found) as counted
        cross join (
          select array_agg(place.at) as ats, array_agg(place.sequence) as sequences
            from (select * from found order by at desc, sequence desc offset $6 limit $7) as place
        ) as page $statement$, array_to_string(lists, ' or '))
      into total, ats, sequences
      using of_tenant, first_moment, coalesce(before, 9223372036854775807), kinds, actors, skip, size;
  end if;
  return query
    select total, current, e.at, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths,
           e.erased
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
