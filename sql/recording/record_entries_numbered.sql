-- Inserts the entries of a batch that are not there yet and not older than the tenant's horizon, with their names,
-- their related items and the delta for the tallies. It is a function so that a connection plans it once, for one
-- change as for thousands: to plan its statements takes six times as long as to run them for one change.
--
-- In: each kind, actor and name of a path once. `entry_kinds` and `entry_actors` are their places (from 1).
-- `related_of` are the places of the entries of related items, `related_items` those of the items in their entries.
-- `entry_path_numbers` are texts of arrays. `numbers` are those of the rows, in this order: of each entry, each kind,
-- each actor, the recorder and the delta. Null: identity columns give them.
--
-- Out: a row with the horizon, whether all entries were inserted, and whether the tenant had erasures; where some were
-- not inserted, such a row for each inserted one.
--
-- Between statements stand arrays, because a cluster refuses statements that write in a WITH query and read other rows
-- beside it.
create function record_entries_numbered(
  of_tenant text, now bigint,
  kind_lookups uuid[], kind_entities text[], kind_types text[], kind_related_entities text[],
  actor_lookups uuid[], actor_names text[],
  entry_ats bigint[], entry_kinds integer[], entry_actors integer[], entry_documents uuid[], entry_identities uuid[],
  entry_ids text[], entry_names text[], entry_schema_versions text[], entry_related text[], entry_paths text[],
  entry_marks text[], entry_contexts text[],
  related_of integer[], related_items integer[], related_documents uuid[], related_entities text[], related_ids text[],
  entry_path_numbers text[],
  path_numbers integer[], path_entities text[], path_names text[], path_rest integer,
  way text, recorder_lookup uuid, recorder_name text, recorder_issuer text, recorder_subject text,
  numbers bigint[]
) returns table (horizon bigint, complete boolean, at bigint, identity uuid, has_erased boolean)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  -- From so many entries on, plain rows are tried first: nearly always all are new, and rows that may conflict cost a
  -- lock and a record of the log each. Fewer do not make up for the statements that it takes.
  min_plain constant integer := 64;
  -- so many entries of the same time tell faster what is known than a look for each
  max_as_old constant integer := 16;
  since constant bigint := change_horizon(of_tenant, now);
  placement constant xid8 := change_placement(of_tenant);
  this_transaction constant xid8 := pg_current_xact_id();
  entries constant integer := cardinality(entry_ats);
  kinds constant integer := cardinality(kind_lookups);
  actors constant integer := cardinality(actor_lookups);
  sequences constant bigint[] := coalesce(numbers[1:entries],
    array(select nextval('change_entry_sequence_seq') from generate_series(1, entries)));
  -- null: an import, which is how most entries come
  recorder bigint := case when way = 'service' then 1 end;
  -- numbers of paths that are not registered
  without_room constant integer[] := path_register(of_tenant, path_numbers, path_entities, path_names, path_rest);
  kind_ids bigint[];
  actor_ids bigint[];
  related_names text[];
  oldest bigint;
  newest bigint;
  as_old uuid[];
  any_known boolean;
  -- the places of the entries that were inserted
  places integer[];
  inserted bigint[] := '{}';
  number bigint;
begin
  if without_room <> '{}' then
    entry_path_numbers := path_numbers_left(entry_path_numbers, without_room, path_rest);
  end if;
  -- a person who writes a document of the service is told apart from the service itself
  if way not in ('import', 'service') or recorder_issuer is not null then
    recorder := (select min(r.recorder) from change_recorder r where r.tenant = of_tenant
      and r.lookup = recorder_lookup);
    if recorder is null then
      recorder := coalesce(numbers[entries + kinds + actors + 1], nextval('change_recorder_recorder_seq'));
      insert into change_recorder (tenant, recorder, lookup, way, name, issuer, subject) overriding system value
        values (of_tenant, recorder, recorder_lookup, record_entries_numbered.way, recorder_name, recorder_issuer,
                recorder_subject);
    end if;
  end if;

  -- Two recorders that register a name at once give it two numbers, which count as one.
  for i in 1..kinds loop
    -- not at once into the array: a cluster refuses tables in an assignment to an element
    number := (select min(k.kind) from change_kind k where k.tenant = of_tenant and k.lookup = kind_lookups[i]);
    if number is null then
      number := coalesce(numbers[entries + i], nextval('change_kind_kind_seq'));
      related_names := array(select json_array_elements_text(kind_related_entities[i]::json));
      insert into change_kind (tenant, kind, lookup, entity, type, related_entities, registered) overriding system value
        values (of_tenant, number, kind_lookups[i], kind_entities[i], kind_types[i], related_names, this_transaction);
    end if;
    kind_ids[i] := number;
  end loop;
  select array_agg(found.actor order by wanted.place) into actor_ids
    from unnest(actor_lookups) with ordinality as wanted (lookup, place)
    left join lateral (
      select min(a.actor) as actor from change_actor a where a.tenant = of_tenant and a.lookup = wanted.lookup
    ) as found on true;
  for i in 1..actors loop
    if actor_ids[i] is null then
      actor_ids[i] := coalesce(numbers[entries + kinds + i], nextval('change_actor_actor_seq'));
      insert into change_actor (tenant, actor, lookup, name, registered) overriding system value
        values (of_tenant, actor_ids[i], actor_lookups[i], actor_names[i], this_transaction);
    end if;
  end loop;

  -- Arrays are read by index: unnest would cost several times as much.
  if entries >= min_plain then
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
          -- entries looks an equal one up by any index that begins with the time. All entries of a snapshot have one.
          cross join lateral (
            select known.at, known.identity from change_entry known
              where known.tenant = of_tenant and (known.at, known.identity) >= (entry_ats[e.i], entry_identities[e.i])
              order by known.at, known.identity limit 1
          ) as known
          where known.at = entry_ats[e.i] and known.identity = entry_identities[e.i]);
    end if;
    if oldest >= since and not any_known then
      begin
        insert into change_entry
            (tenant, at, sequence, kind, actor, document, identity, entity_id, name, schema_version, related, paths,
             marks, context, recorded_by, recorded, recorded_on, path_numbers) overriding system value
          select of_tenant, entry_ats[e.i], sequences[e.i], kind_ids[entry_kinds[e.i]], actor_ids[entry_actors[e.i]],
                 entry_documents[e.i], entry_identities[e.i], entry_ids[e.i], entry_names[e.i],
                 entry_schema_versions[e.i], entry_related[e.i], entry_paths[e.i], entry_marks[e.i],
                 entry_contexts[e.i], recorder, this_transaction, placement,
                 entry_path_numbers[e.i]::integer[]
            from generate_series(1, entries) as e (i);
        places := array(select generate_series(1, entries));
      exception when unique_violation then
        -- the batch has one twice, or somebody else has recorded it at this moment
        null;
      end;
    end if;
  end if;
  if places is null then
    for number in
      insert into change_entry
          (tenant, at, sequence, kind, actor, document, identity, entity_id, name, schema_version, related, paths,
           marks, context, recorded_by, recorded, recorded_on, path_numbers) overriding system value
        select of_tenant, entry_ats[e.i], sequences[e.i], kind_ids[entry_kinds[e.i]], actor_ids[entry_actors[e.i]],
               entry_documents[e.i], entry_identities[e.i], entry_ids[e.i], entry_names[e.i],
               entry_schema_versions[e.i], entry_related[e.i], entry_paths[e.i], entry_marks[e.i], entry_contexts[e.i],
               recorder, this_transaction, placement,
               entry_path_numbers[e.i]::integer[]
          from generate_series(1, entries) as e (i)
          where entry_ats[e.i] >= since
          order by e.i
        on conflict (tenant, at, identity) do nothing
        returning sequence
    loop
      inserted := array_append(inserted, number);
    end loop;
    places := array(
      select e.i from generate_series(1, entries) as e (i)
        where sequences[e.i] in (select unnest(inserted)) order by 1);
  end if;

  if cardinality(places) > 0 then
    number := coalesce(numbers[entries + kinds + actors + 2], nextval('change_delta_delta_seq'));
    insert into change_delta
        (tenant, delta, ats, sequences, kinds, actors, recorder, recorded, day, bytes, documents, names, transaction)
      overriding system value
      select of_tenant, number, array_agg(entry_ats[e.i]), array_agg(sequences[e.i]),
             array_agg(kind_ids[entry_kinds[e.i]]), array_agg(actor_ids[entry_actors[e.i]]), coalesce(recorder, 2), now,
             now / 86400000,
             sum(octet_length(entry_ids[e.i])::bigint + octet_length(entry_paths[e.i])
                 + coalesce(octet_length(entry_names[e.i]), 0) + coalesce(octet_length(entry_schema_versions[e.i]), 0)
                 + coalesce(octet_length(entry_related[e.i]), 0) + coalesce(octet_length(entry_marks[e.i]), 0)
                 + coalesce(octet_length(entry_contexts[e.i]), 0)),
             case when bool_or(entry_names[e.i] is not null)
               then array_agg(case when entry_names[e.i] is not null then entry_documents[e.i] end) end,
             case when bool_or(entry_names[e.i] is not null) then array_agg(entry_names[e.i]) end,
             -- 0: the tenant is on another server, where this id means nothing
             case when placement is distinct from '0' then this_transaction end
        from unnest(places) as e (i);
    if related_of <> '{}' then
      insert into change_related (tenant, at, sequence, item, document, entity, entity_id)
        select of_tenant, entry_ats[related_of[r.i]], sequences[related_of[r.i]], related_items[r.i],
               related_documents[r.i], related_entities[r.i], related_ids[r.i]
          from generate_series(1, cardinality(related_of)) as r (i)
          where cardinality(places) = entries or related_of[r.i] in (select unnest(places));
    end if;
  end if;
  -- behind the inserts: an erasure that began before them is seen
  has_erased := exists (select from change_erasure r where r.tenant = of_tenant);
  horizon := since;
  complete := cardinality(places) = entries;
  if complete or cardinality(places) = 0 then
    return next;
    return;
  end if;
  return query
    select since, false, entry_ats[e.i], entry_identities[e.i], has_erased from unnest(places) as e (i);
end
$$;
