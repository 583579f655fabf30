-- The history of entries with a path whose name is like one of some texts, in [since, before), as change_read answers
-- it. Null stands for any: kinds, actors, and the entity types of the paths. The total is null where numbers of paths
-- do not decide alone (docs/decisions/finding.md), there are too many of them, or more entries than `max_total`: then
-- entries are to be read, in several statements.
create function change_read_paths(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[],
                                  actors bigint[], entities text[], names_like text[], skip bigint, size bigint,
                                  max_total bigint, names_since xid8, recent bigint, lineage text)
returns table (total bigint, current boolean, at bigint, kind bigint, actor bigint, entity_id text,
               name text, schema_version text, related text, paths text, erased text, correlation_id text)
language plpgsql stable
-- a row is found by its time and number: see change_read_documents
set enable_sort = off set enable_incremental_sort = off as $$
#variable_conflict use_column
declare
  -- lists of numbers: see the service's conditions on paths
  max_lists constant integer := 64;
  end_moment constant bigint := coalesce(before, 9223372036854775807);
  first_moment bigint;
  numbers integer[];
  is_told boolean;
  condition text;
  -- how many entries of the window are looked at before a search
  few constant integer := 100;
  looked integer;
  -- where those of them that match stand, then those of the page
  ats bigint[];
  sequences bigint[];
begin
  perform change_search_costs();
  select greatest(since, s.horizon), s.current into first_moment, current
    from change_snapshot(of_tenant, now, names_since, recent, lineage) s;
  select array_agg(distinct n.number), coalesce(not bool_or(n.is_shared or n.entity = ''), true)
    into numbers, is_told
    from change_path_names(of_tenant, entities, names_like, false) n;
  if is_told and numbers is not null then
    -- The newest entries tell how frequent the paths are, and may have the page.
    select count(*), coalesce(array_agg(newest.at order by newest.at desc, newest.sequence desc)
                                filter (where newest.matches), '{}'),
           coalesce(array_agg(newest.sequence order by newest.at desc, newest.sequence desc)
                      filter (where newest.matches), '{}')
      into looked, ats, sequences
      from (
        select n.at, n.sequence, n.path_numbers && numbers and (kinds is null or n.kind = any (kinds))
                 and (actors is null or n.actor = any (actors)) as matches
          from change_entry n
          where n.tenant = of_tenant and n.at >= first_moment and n.at < end_moment
          order by n.at desc, n.sequence desc limit few
      ) as newest;
    -- Who wants a few does not search for many.
    is_told := looked < few or cardinality(numbers) <= max_lists and (max_total is null or cardinality(ats) < 2);
  end if;
  if not is_told then
    ats := null;
  elsif numbers is null then
    total := 0;
  elsif looked < few then
    total := cardinality(ats);
    ats := ats[skip + 1:skip + size];
    sequences := sequences[skip + 1:skip + size];
  else
    -- The planner sees how many entries each number has: of one value for all it would not. To plan that takes longer
    -- than a search for what is rare.
    condition := 'e.at >= $2 and e.at < $3 and ($4 is null or e.kind = any ($4))
      and ($5 is null or e.actor = any ($5)) and (' || case
        when cardinality(ats) < 2 then format('e.path_numbers && %L::integer[]', numbers)
        else (select string_agg(format('e.path_numbers && ''{%s}''::integer[]', n.number), ' or ')
          from unnest(numbers) as n (number)) end || ')';
    if cardinality(ats) >= skip + size then
      ats := ats[skip + 1:skip + size];
      sequences := sequences[skip + 1:skip + size];
      execute 'select count(*) from change_entry e where e.tenant = $1 and ' || condition
        into total using of_tenant, first_moment, end_moment, kinds, actors;
    else
      execute 'with found as materialized (
          select e.at, e.sequence from change_entry e where e.tenant = $1 and ' || condition || '
        ) select counted.total, page.ats, page.sequences
          from (select count(*) as total from found) as counted
          cross join (
            select array_agg(place.at) as ats, array_agg(place.sequence) as sequences
              from (select * from found order by at desc, sequence desc offset $6 limit $7) as place
          ) as page'
        into total, ats, sequences using of_tenant, first_moment, end_moment, kinds, actors, skip, size;
    end if;
  end if;
  if total > max_total then
    total := null;
    ats := null;
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
