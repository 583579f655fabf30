-- Inserts the new entries of a batch that are not older than the tenant's horizon, with their names, related items and
-- the delta for the tallies. A function, because its plans are cached per connection: planning the statements takes six
-- times as long as running them for one change.
--
-- In: `numbers` for the rows: of each entry, each kind, each actor, the recorder and the delta (null: identity columns
-- give them).
-- Out: one row with the horizon, whether all entries were inserted, and whether the tenant has erasures; if some were
-- not inserted, such a row for each inserted one.
--
-- Intermediate results are arrays: a cluster refuses statements that write in a WITH query and read other rows too.
-- Elements are read by unnest in a select list, which, unlike unnest in FROM, does not copy them.
create function record_entries_numbered(
  of_tenant text, now bigint, entries change_input[], batch change_batch, numbers bigint[]
) returns table (horizon bigint, complete boolean, at bigint, identity uuid, has_erased boolean)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  -- From this many entries on, plain inserts are tried first: nearly always all are new, and rows that may conflict
  -- cost a lock and a WAL record each. Fewer entries do not make up for the additional statements.
  min_plain constant integer := 64;
  -- Up to this many existing entries in the batch's time range, comparing identities beats a lookup for each entry.
  max_as_old constant integer := 16;
  since constant bigint := change_horizon(of_tenant, now);
  placement constant xid8 := change_placement(of_tenant);
  this_transaction constant xid8 := pg_current_xact_id();
  size constant integer := cardinality(entries);
  sequences constant bigint[] := coalesce(numbers[1:size],
    array(select nextval('change_entry_sequence_seq') from generate_series(1, size)));
  -- null: an import, which is how most entries come
  recorder bigint := case when batch.way = 'service' then 1 end;
  kinds constant integer := cardinality(batch.kind_lookups);
  actors constant integer := cardinality(batch.actor_lookups);
  actor_names constant text[] := batch.actor_names;
  new_paths constant integer[] := batch.path_numbers;
  path_entities constant text[] := batch.path_entities;
  path_names constant text[] := batch.path_names;
  path_rest constant integer := batch.path_rest;
  -- numbers of paths that are not registered, and then the path numbers of each entry as the text of an array
  without_room constant integer[] := path_register(of_tenant, new_paths, path_entities, path_names, path_rest);
  path_numbers text[];
  ats bigint[];
  identities uuid[];
  kind_ids bigint[];
  actor_ids bigint[];
  related_names text[];
  oldest bigint;
  newest bigint;
  as_old uuid[];
  any_known boolean;
  -- the places of the inserted entries
  places integer[];
  inserted bigint[] := '{}';
  number bigint;
begin
  select array_agg((e).at), array_agg((e).identity), min((e).at), max((e).at) into ats, identities, oldest, newest
    from (select unnest(entries) as e) as given;
  if without_room <> '{}' then
    path_numbers := path_numbers_left(
      array(select (e).path_numbers::text from (select unnest(entries) as e) as given), without_room, path_rest);
  end if;
  -- a person who writes a document of the service is distinguished from the service itself
  if batch.way not in ('import', 'service') or batch.recorder_issuer is not null then
    recorder := (select min(r.recorder) from change_recorder r where r.tenant = of_tenant
      and r.lookup = batch.recorder_lookup);
    if recorder is null then
      recorder := coalesce(numbers[cardinality(numbers) - 1], nextval('change_recorder_recorder_seq'));
      insert into change_recorder (tenant, recorder, lookup, way, name, issuer, subject) overriding system value
        values (of_tenant, recorder, batch.recorder_lookup, batch.way, batch.recorder_name, batch.recorder_issuer,
                batch.recorder_subject);
    end if;
  end if;

  -- Two recorders that register a name at once give it two numbers, which count as one.
  for i in 1..kinds loop
    -- not at once into the array: a cluster refuses tables in an assignment to an element
    number := (select min(k.kind) from change_kind k where k.tenant = of_tenant and k.lookup = batch.kind_lookups[i]);
    if number is null then
      number := coalesce(numbers[size + i], nextval('change_kind_kind_seq'));
      related_names := array(select json_array_elements_text(batch.kind_related_entities[i]::json));
      insert into change_kind (tenant, kind, lookup, entity, type, related_entities, registered) overriding system value
        values (of_tenant, number, batch.kind_lookups[i], batch.kind_entities[i], batch.kind_types[i], related_names,
                this_transaction);
    end if;
    kind_ids[i] := number;
  end loop;
  select array_agg(found.actor order by wanted.place) into actor_ids
    from unnest(batch.actor_lookups) with ordinality as wanted (lookup, place)
    left join lateral (
      select min(a.actor) as actor from change_actor a where a.tenant = of_tenant and a.lookup = wanted.lookup
    ) as found on true;
  for i in 1..actors loop
    if actor_ids[i] is null then
      actor_ids[i] := coalesce(numbers[size + kinds + i], nextval('change_actor_actor_seq'));
      insert into change_actor (tenant, actor, lookup, name, actor_id, behalf_name, behalf_id, registered)
        overriding system value
        values (of_tenant, actor_ids[i], batch.actor_lookups[i], actor_names[i], batch.actor_ids[i],
                batch.behalf_names[i], batch.behalf_ids[i], this_transaction);
    end if;
  end loop;

  if size >= min_plain then
    as_old := array(
      select e.identity from change_entry e
        where e.tenant = of_tenant and e.at between oldest and newest order by e.at limit max_as_old + 1);
    if cardinality(as_old) <= max_as_old then
      any_known := identities && as_old;
    else
      any_known := exists (
        select from generate_series(1, size) as e (i)
          -- The first from here on, in the order of the index of identities: a generic plan made while there are few
          -- entries would look an equal one up by any index that begins with the time, which all entries of a snapshot
          -- share.
          cross join lateral (
            select known.at, known.identity from change_entry known
              where known.tenant = of_tenant and (known.at, known.identity) >= (ats[e.i], identities[e.i])
              order by known.at, known.identity limit 1
          ) as known
          where known.at = ats[e.i] and known.identity = identities[e.i]);
    end if;
    if oldest >= since and not any_known then
      begin
        insert into change_entry
            (tenant, at, sequence, kind, actor, document, identity, entity_id, name, schema_version, related, paths,
             marks, context, correlation, correlation_text, recorded_by, recorded, recorded_on, path_numbers)
            overriding system value
          select of_tenant, (e).at, sequences[i], kind_ids[(e).kind], actor_ids[(e).actor], (e).document, (e).identity,
                 (e).entity_id, (e).name, (e).schema_version, (e).related, (e).paths, (e).marks, (e).context,
                 (e).correlation, (e).correlation_text, recorder, this_transaction, placement,
                 coalesce(path_numbers[i]::integer[], (e).path_numbers)
            from (select unnest(entries) as e, generate_series(1, size) as i) as given;
        places := array(select generate_series(1, size));
      exception when unique_violation then
        -- the batch has one twice, or another recorder has just recorded it
        null;
      end;
    end if;
  end if;
  if places is null then
    for number in
      insert into change_entry
          (tenant, at, sequence, kind, actor, document, identity, entity_id, name, schema_version, related, paths,
           marks, context, correlation, correlation_text, recorded_by, recorded, recorded_on, path_numbers)
          overriding system value
        select of_tenant, (e).at, sequences[i], kind_ids[(e).kind], actor_ids[(e).actor], (e).document, (e).identity,
               (e).entity_id, (e).name, (e).schema_version, (e).related, (e).paths, (e).marks, (e).context,
               (e).correlation, (e).correlation_text, recorder, this_transaction, placement,
               coalesce(path_numbers[i]::integer[], (e).path_numbers)
          from (select unnest(entries) as e, generate_series(1, size) as i) as given
          where (e).at >= since
          order by i
        on conflict (tenant, at, identity) do nothing
        returning sequence
    loop
      inserted := array_append(inserted, number);
    end loop;
    places := array(
      select e.i from generate_series(1, size) as e (i)
        where sequences[e.i] in (select unnest(inserted)) order by 1);
  end if;

  if cardinality(places) > 0 then
    number := coalesce(numbers[cardinality(numbers)], nextval('change_delta_delta_seq'));
    insert into change_delta
        (tenant, delta, ats, sequences, kinds, actors, recorder, recorded, day, bytes, documents, names, transaction)
      overriding system value
      select of_tenant, number, array_agg((e).at), array_agg(sequences[i]), array_agg(kind_ids[(e).kind]),
             array_agg(actor_ids[(e).actor]), coalesce(recorder, 2), now, now / 86400000,
             sum(octet_length((e).entity_id)::bigint + octet_length((e).paths)
                 + coalesce(octet_length((e).name), 0) + coalesce(octet_length((e).schema_version), 0)
                 + coalesce(octet_length((e).related), 0) + coalesce(octet_length((e).marks), 0)
                 + coalesce(octet_length((e).context), 0) + case when (e).correlation is not null then 16 else 0 end
                 + coalesce(octet_length((e).correlation_text), 0)),
             case when bool_or((e).name is not null)
               then array_agg(case when (e).name is not null then (e).document end) end,
             case when bool_or((e).name is not null) then array_agg((e).name) end,
             -- 0: the tenant is on another server, where this id means nothing
             case when placement is distinct from '0' then this_transaction end
        from (select unnest(entries) as e, generate_series(1, size) as i) as given
        where cardinality(places) = size or i in (select unnest(places));
    if batch.related_of <> '{}' then
      insert into change_related (tenant, at, sequence, item, document, entity, entity_id)
        select of_tenant, ats[r.entry], sequences[r.entry], r.item, r.document, r.entity, r.entity_id
          from unnest(batch.related_of, batch.related_items, batch.related_documents, batch.related_entities,
                      batch.related_ids) as r (entry, item, document, entity, entity_id)
          where cardinality(places) = size or r.entry in (select unnest(places));
    end if;
  end if;
  -- after the inserts, so that an erasure that began before them is seen
  has_erased := exists (select from change_erasure r where r.tenant = of_tenant);
  horizon := since;
  complete := cardinality(places) = size;
  if complete or cardinality(places) = 0 then
    return next;
    return;
  end if;
  return query
    select since, false, ats[e.i], identities[e.i], has_erased from unnest(places) as e (i);
end
$$;
