-- record_entries of one server, with arrays between statements: a cluster refuses statements that write in a WITH
-- query and read other rows beside it. The numbers of rows are those of the coordinator, so that a tenant's go on
-- after it has moved to another worker: first one for each entry, in their order, then one for each kind, each actor,
-- the recorder and the delta.
create function record_entries_numbered(
  of_tenant text, now bigint,
  kind_lookups uuid[], kind_entities text[], kind_types text[], kind_related_entities text[],
  actor_lookups uuid[], actor_names text[],
  entry_ats bigint[], entry_kinds integer[], entry_actors integer[], entry_documents uuid[], entry_identities uuid[],
  entry_ids text[], entry_names text[], entry_schema_versions text[], entry_related text[], entry_paths text[],
  entry_marks text[], entry_contexts text[], way text, recorder_lookup uuid, recorder_name text,
  numbers bigint[]
) returns table (horizon bigint, complete boolean, at bigint, identity uuid)
language plpgsql set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare
  since constant bigint := change_horizon(of_tenant, now);
  placement constant xid8 := change_placement(of_tenant);
  this_transaction constant xid8 := pg_current_xact_id();
  entries constant integer := cardinality(entry_ats);
  kinds_given constant integer := cardinality(kind_lookups);
  rest constant integer := entries + kinds_given + cardinality(actor_lookups);
  recorder bigint := case when way = 'service' then 1 end;
  kind_id bigint;
  kind_ids bigint[];
  actor_ids bigint[];
  related_names text[];
  one record;
  ats bigint[] := '{}';
  sequences bigint[] := '{}';
  kinds bigint[] := '{}';
  actors bigint[] := '{}';
  identities uuid[] := '{}';
  relateds text[] := '{}';
  all_bytes bigint := 0;
begin
  if way not in ('import', 'service') then
    recorder := (select min(r.recorder) from change_recorder r where r.tenant = of_tenant
      and r.lookup = recorder_lookup);
    if recorder is null then
      recorder := numbers[rest + 1];
      insert into change_recorder (tenant, recorder, lookup, way, name) overriding system value
        values (of_tenant, recorder, recorder_lookup, record_entries_numbered.way, recorder_name);
    end if;
  end if;

  for i in 1..kinds_given loop
    kind_id := (select min(k.kind) from change_kind k where k.tenant = of_tenant and k.lookup = kind_lookups[i]);
    if kind_id is null then
      kind_id := numbers[entries + i];
      related_names := array(select json_array_elements_text(kind_related_entities[i]::json));
      insert into change_kind (tenant, kind, lookup, entity, type, related_entities, registered) overriding system value
        values (of_tenant, kind_id, kind_lookups[i], kind_entities[i], kind_types[i], related_names, this_transaction);
    end if;
    kind_ids[i] := kind_id;
  end loop;
  select array_agg(found.actor order by wanted.place) into actor_ids
    from unnest(actor_lookups) with ordinality as wanted (lookup, place)
    left join lateral (
      select min(a.actor) as actor from change_actor a where a.tenant = of_tenant and a.lookup = wanted.lookup
    ) as found on true;
  for i in 1..cardinality(actor_lookups) loop
    if actor_ids[i] is null then
      actor_ids[i] := numbers[entries + kinds_given + i];
      insert into change_actor (tenant, actor, lookup, name, registered) overriding system value
        values (of_tenant, actor_ids[i], actor_lookups[i], actor_names[i], this_transaction);
    end if;
  end loop;

  if entries = 1 and entry_related[1] is null then
    horizon := since;
    if entry_ats[1] >= since then
      insert into change_entry
          (tenant, at, sequence, kind, actor, document, identity, entity_id, name, schema_version, related, paths,
            marks, context,
           recorded_by, recorded, recorded_on) overriding system value
        values (of_tenant, entry_ats[1], numbers[1], kind_ids[entry_kinds[1]], actor_ids[entry_actors[1]],
          entry_documents[1],
                entry_identities[1], entry_ids[1], entry_names[1], entry_schema_versions[1], null, entry_paths[1],
                  entry_marks[1],
                entry_contexts[1], recorder, this_transaction, placement)
        on conflict (tenant, at, identity) do nothing;
      complete := found;
      if found then
        insert into change_delta (tenant, delta, ats, kinds, actors, recorder, recorded, day,
          bytes) overriding system value
          values (of_tenant, numbers[rest + 2], array[entry_ats[1]], array[kind_ids[entry_kinds[1]]],
                  array[actor_ids[entry_actors[1]]], coalesce(recorder, 2), now, now / 86400000,
                  octet_length(entry_ids[1]) + octet_length(entry_paths[1]) + coalesce(octet_length(entry_names[1]), 0)
                    + coalesce(octet_length(entry_schema_versions[1]), 0) + coalesce(octet_length(entry_marks[1]), 0)
                    + coalesce(octet_length(entry_contexts[1]), 0));
      end if;
    end if;
    return next;
    return;
  end if;

  for one in
    insert into change_entry
        (tenant, at, sequence, kind, actor, document, identity, entity_id, name, schema_version, related, paths,
          marks, context,
         recorded_by, recorded, recorded_on) overriding system value
      select of_tenant, input.at, input.sequence, kind_ids[input.kind], actor_ids[input.actor], input.document,
        input.identity,
             input.entity_id, input.name, input.schema_version, input.related, input.paths, input.marks, input.context,
             recorder, this_transaction, placement
        from unnest(entry_ats, numbers[1:entries], entry_kinds, entry_actors, entry_documents, entry_identities,
          entry_ids,
                    entry_names, entry_schema_versions, entry_related, entry_paths, entry_marks, entry_contexts)
          as input (at, sequence, kind, actor, document, identity, entity_id, name, schema_version, related, paths,
            marks, context)
        where input.at >= since
        order by input.sequence
      on conflict (tenant, at, identity) do nothing
      returning at, sequence, kind, actor, identity, related,
                octet_length(entity_id)::bigint + octet_length(paths) + coalesce(octet_length(name), 0)
                  + coalesce(octet_length(schema_version), 0) + coalesce(octet_length(related), 0)
                  + coalesce(octet_length(marks), 0) + coalesce(octet_length(context), 0) as bytes
  loop
    ats := array_append(ats, one.at);
    sequences := array_append(sequences, one.sequence);
    kinds := array_append(kinds, one.kind);
    actors := array_append(actors, one.actor);
    identities := array_append(identities, one.identity);
    relateds := array_append(relateds, one.related);
    all_bytes := all_bytes + one.bytes;
  end loop;
  if cardinality(ats) > 0 then
    insert into change_delta (tenant, delta, ats, kinds, actors, recorder, recorded, day, bytes) overriding system value
      values (of_tenant, numbers[rest + 2], ats, kinds, actors, coalesce(recorder, 2), now, now / 86400000, all_bytes);
    if exists (select from unnest(relateds) as r (related) where r.related is not null) then
      insert into change_related (tenant, at, sequence, item, document, entity, entity_id)
        select of_tenant, item.at, item.sequence, item.item, item.document, item.entity, item.entity_id
          from (
            select entry.at, entry.sequence, row_number() over (partition by entry.at, entry.sequence)::integer as item,
                   change_document(item.entity_id) as document, item.entity, item.entity_id
              from unnest(ats, sequences, relateds) as entry (at, sequence, related)
              cross join lateral (
                select distinct r ->> 'entity', r ->> 'entityId' from json_array_elements(entry.related::json) as r
              ) as item (entity, entity_id)
              where entry.related is not null
          ) as item;
    end if;
  end if;
  horizon := since;
  complete := cardinality(ats) = entries;
  if complete or cardinality(ats) = 0 then
    return next;
    return;
  end if;
  return query select since, false, e.at, e.identity from unnest(ats, identities) as e (at, identity);
end
$$;
