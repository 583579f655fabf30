-- What records changes (src/recording/store.ts), as a function: its plan is made once for a connection and then used
-- for one change as for thousands. To plan the statement anew costs six times what it takes to run for one change.
create function record_entries(
  of_tenant text, now bigint,
  kind_lookups uuid[], kind_entities text[], kind_types text[], kind_related_entities text[],
  actor_lookups uuid[], actor_names text[],
  entry_ats bigint[], entry_kinds integer[], entry_actors integer[], entry_documents uuid[], entry_identities uuid[],
  entry_ids text[], entry_names text[], entry_schema_versions text[], entry_related text[], entry_paths text[],
  entry_marks text[], entry_contexts text[], way text, recorder_lookup uuid, recorder_name text
) returns table (horizon bigint, complete boolean, at bigint, identity uuid)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  since bigint;
  kind_of_entry bigint;
  actor_of_entry bigint;
  -- null: an import, which is how most entries come
  recorder bigint := case when way = 'service' then 1 end;
  entries constant integer := cardinality(entry_ats);
  kind_ids bigint[];
  actor_ids bigint[];
  sequences bigint[];
  all_bytes bigint;
  oldest bigint;
  newest bigint;
  max_as_old constant integer := 16;
  as_old uuid[];
  any_known boolean;
begin
  if way not in ('import', 'service') then
    recorder := (select min(r.recorder) from change_recorder r where r.tenant = of_tenant
      and r.lookup = recorder_lookup);
    if recorder is null then
      insert into change_recorder as r (tenant, lookup, way, name)
        values (of_tenant, recorder_lookup, record_entries.way, recorder_name) returning r.recorder into recorder;
    end if;
  end if;

  -- One change without related items, as a document of this service has them: the same in a few small steps.
  if cardinality(entry_ats) = 1 and entry_related[1] is null then
    since := change_horizon(of_tenant, now);
    horizon := since;
    kind_of_entry := (select min(k.kind) from change_kind k where k.tenant = of_tenant and k.lookup = kind_lookups[1]);
    if kind_of_entry is null then
      insert into change_kind (tenant, lookup, entity, type, related_entities)
        values (of_tenant, kind_lookups[1], kind_entities[1], kind_types[1],
                array(select json_array_elements_text(kind_related_entities[1]::json)))
        returning kind into kind_of_entry;
    end if;
    actor_of_entry := (select min(a.actor) from change_actor a where a.tenant = of_tenant
      and a.lookup = actor_lookups[1]);
    if actor_of_entry is null then
      insert into change_actor (tenant, lookup, name) values (of_tenant, actor_lookups[1], actor_names[1])
        returning actor into actor_of_entry;
    end if;
    if entry_ats[1] >= since then
      insert into change_entry
          (tenant, at, kind, actor, document, identity, entity_id, name, schema_version, related, paths, marks, context,
           recorded_by)
        values (of_tenant, entry_ats[1], kind_of_entry, actor_of_entry, entry_documents[1], entry_identities[1],
                entry_ids[1], entry_names[1], entry_schema_versions[1], null, entry_paths[1], entry_marks[1],
                entry_contexts[1], recorder)
        on conflict (tenant, at, identity) do nothing;
      complete := found;
      if found then
        insert into change_delta (tenant, ats, kinds, actors, recorder, recorded, day, bytes)
          values (of_tenant, array[entry_ats[1]], array[kind_of_entry], array[actor_of_entry], coalesce(recorder, 2),
            now, now / 86400000,
                  octet_length(entry_ids[1]) + octet_length(entry_paths[1]) + coalesce(octet_length(entry_names[1]), 0)
                    + coalesce(octet_length(entry_schema_versions[1]), 0) + coalesce(octet_length(entry_marks[1]), 0)
                    + coalesce(octet_length(entry_contexts[1]), 0));
      end if;
    end if;
    return next;
    return;
  end if;

  -- Many changes, which nearly always are new. Rows that may conflict would cost a lock and a record of the log each,
  -- and unnest costs several times what arrays do that are read by index. It takes more statements, so few changes go
  -- the way below.
  if entries >= 64 then
    since := change_horizon(of_tenant, now);
    with wanted as (
      select * from unnest(kind_lookups, kind_entities, kind_types, kind_related_entities) with ordinality
        as wanted (lookup, entity, type, related_entities, place)
    ), registered as (
      insert into change_kind (tenant, lookup, entity, type, related_entities)
        select of_tenant, wanted.lookup, wanted.entity, wanted.type,
               array(select json_array_elements_text(wanted.related_entities::json))
          from wanted
          where not exists (select from change_kind k where k.tenant = of_tenant and k.lookup = wanted.lookup)
        returning lookup, kind
    )
    select array_agg(coalesce(
             (select min(k.kind) from change_kind k where k.tenant = of_tenant and k.lookup = wanted.lookup),
             (select k.kind from registered k where k.lookup = wanted.lookup)) order by wanted.place)
      into kind_ids
      from wanted;
    with wanted as (
      select * from unnest(actor_lookups, actor_names) with ordinality as wanted (lookup, name, place)
    ), registered as (
      insert into change_actor (tenant, lookup, name)
        select of_tenant, wanted.lookup, wanted.name
          from wanted
          where not exists (select from change_actor a where a.tenant = of_tenant and a.lookup = wanted.lookup)
        returning lookup, actor
    )
    select array_agg(coalesce(
             (select min(a.actor) from change_actor a where a.tenant = of_tenant and a.lookup = wanted.lookup),
             (select a.actor from registered a where a.lookup = wanted.lookup)) order by wanted.place)
      into actor_ids
      from wanted;

    -- Where few entries are as old as these, they tell at once that none of these is known.
    select min(given.at), max(given.at) into oldest, newest from unnest(entry_ats) as given (at);
    as_old := array(
      select e.identity from change_entry e
        where e.tenant = of_tenant and e.at between oldest and newest order by e.at limit max_as_old + 1);
    if cardinality(as_old) <= max_as_old then
      any_known := entry_identities && as_old;
    else
      any_known := exists (
        select from generate_series(1, entries) as e (i)
          -- The first from here on, in the order of the index of identities. A plan that is made while there are few
          -- entries looks an equal one up by any index that begins with the time. A snapshot has all its entries at one.
          cross join lateral (
            select known.at, known.identity from change_entry known
              where known.tenant = of_tenant and (known.at, known.identity) >= (entry_ats[e.i], entry_identities[e.i])
              order by known.at, known.identity limit 1
          ) as known
          where known.at = entry_ats[e.i] and known.identity = entry_identities[e.i]);
    end if;
    if oldest >= since and not any_known then
      begin
        with entry as (
          insert into change_entry
              (tenant, at, kind, actor, document, identity, entity_id, name, schema_version, related, paths, marks,
                context,
               recorded_by)
            select of_tenant, entry_ats[e.i], kind_ids[entry_kinds[e.i]], actor_ids[entry_actors[e.i]],
              entry_documents[e.i],
                   entry_identities[e.i], entry_ids[e.i], entry_names[e.i], entry_schema_versions[e.i],
                     entry_related[e.i],
                   entry_paths[e.i], entry_marks[e.i], entry_contexts[e.i], recorder
              from generate_series(1, entries) as e (i)
            returning sequence, octet_length(entity_id)::bigint + octet_length(paths) + coalesce(octet_length(name), 0)
                        + coalesce(octet_length(schema_version), 0) + coalesce(octet_length(related), 0)
                        + coalesce(octet_length(marks), 0) + coalesce(octet_length(context), 0) as bytes
        )
        select array_agg(entry.sequence), sum(entry.bytes) into sequences, all_bytes from entry;
        insert into change_delta (tenant, ats, kinds, actors, recorder, recorded, day, bytes)
          select of_tenant, entry_ats, array_agg(kind_ids[entry_kinds[e.i]]), array_agg(actor_ids[entry_actors[e.i]]),
                 coalesce(recorder, 2), now, now / 86400000, all_bytes
            from generate_series(1, entries) as e (i);
        insert into change_related (tenant, at, sequence, item, document, entity, entity_id)
          select of_tenant, entry_ats[item.i], sequences[item.i], item.place, change_document(item.entity_id),
            item.entity,
                 item.entity_id
            from (
              select e.i, r.entity, r.entity_id, min(r.place)::integer as place
                from generate_series(1, entries) as e (i)
                cross join lateral rows from (json_to_recordset(entry_related[e.i]::json) as (entity text,
                  "entityId" text))
                  with ordinality as r (entity, entity_id, place)
                where entry_related[e.i] is not null
                group by e.i, r.entity, r.entity_id
            ) as item
            order by item.i;
        horizon := since;
        complete := true;
        return next;
        return;
      exception when unique_violation then
        -- the batch has one twice, or somebody else has recorded it at this moment
        null;
      end;
    end if;
  end if;

  return query
  with horizon as materialized (
    select change_horizon($1, $2) as since
  ), kind_wanted as (
    select * from unnest($3::uuid[], $4::text[], $5::text[], $6::text[]) with ordinality
      as wanted (lookup, entity, type, related_entities, place)
  ), kind_registered as (
    insert into change_kind (tenant, lookup, entity, type, related_entities)
      select $1, wanted.lookup, wanted.entity, wanted.type,
             array(select json_array_elements_text(wanted.related_entities::json))
        from kind_wanted as wanted
        where not exists (select from change_kind k where k.tenant = $1 and k.lookup = wanted.lookup)
      returning lookup, kind
  ), kind as materialized (
    select array_agg(coalesce(
             (select min(k.kind) from change_kind k where k.tenant = $1 and k.lookup = wanted.lookup),
             (select k.kind from kind_registered k where k.lookup = wanted.lookup)) order by wanted.place) as ids
      from kind_wanted as wanted
  ), actor_wanted as (
    select * from unnest($7::uuid[], $8::text[]) with ordinality as wanted (lookup, name, place)
  ), actor_registered as (
    insert into change_actor (tenant, lookup, name)
      select $1, wanted.lookup, wanted.name
        from actor_wanted as wanted
        where not exists (select from change_actor a where a.tenant = $1 and a.lookup = wanted.lookup)
      returning lookup, actor
  ), actor as materialized (
    select array_agg(coalesce(
             (select min(a.actor) from change_actor a where a.tenant = $1 and a.lookup = wanted.lookup),
             (select a.actor from actor_registered a where a.lookup = wanted.lookup)) order by wanted.place) as ids
      from actor_wanted as wanted
  ), entry as (
    insert into change_entry
        (tenant, at, kind, actor, document, identity, entity_id, name, schema_version, related, paths, marks, context,
         recorded_by)
      select $1, input.at, kind.ids[input.kind], actor.ids[input.actor], input.document, input.identity,
             input.entity_id, input.name, input.schema_version, input.related, input.paths, input.marks, input.context,
             recorder
        from unnest($9::bigint[], $10::integer[], $11::integer[], $12::uuid[], $13::uuid[], $14::text[], $15::text[],
                    $16::text[], $17::text[], $18::text[], $19::text[], $20::text[]) with ordinality
          as input (at, kind, actor, document, identity, entity_id, name, schema_version, related, paths, marks,
            context, place)
        cross join horizon cross join kind cross join actor
        where input.at >= horizon.since
        order by input.place
      on conflict (tenant, at, identity) do nothing
      returning at, sequence, kind, actor, identity, related,
                octet_length(entity_id)::bigint + octet_length(paths) + coalesce(octet_length(name), 0)
                  + coalesce(octet_length(schema_version), 0) + coalesce(octet_length(related), 0)
                  + coalesce(octet_length(marks), 0) + coalesce(octet_length(context), 0) as bytes
  ), delta as (
    insert into change_delta (tenant, ats, kinds, actors, recorder, recorded, day, bytes)
      select $1, array_agg(at), array_agg(kind), array_agg(actor), coalesce(recorder, 2), $2, $2 / 86400000,
        sum(bytes) from entry having count(*) > 0
  ), related as (
    insert into change_related (tenant, at, sequence, item, document, entity, entity_id)
      select $1, entry.at, entry.sequence, row_number() over (partition by entry.at, entry.sequence),
        change_document(item.entity_id),
             item.entity, item.entity_id
        from entry
        cross join lateral (
          select distinct r ->> 'entity', r ->> 'entityId' from json_array_elements(entry.related::json) as r
        ) as item (entity, entity_id)
        where entry.related is not null
  )
  -- which were inserted is told only where not all of them were
  select horizon.since, counted.complete, entry.at, entry.identity
    from horizon
    cross join (select count(*) = cardinality($9) as complete from entry) as counted
    left join entry on not counted.complete;
end
$$;
