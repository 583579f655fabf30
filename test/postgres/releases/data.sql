-- Held data for a database of any release: columns that all of them have. What stands after "-- fold" waits to be folded.
insert into tenant (tenant) values ('acme'), ('globex');
insert into change_kind (tenant, lookup, entity, type, related_entities)
  select 'acme', md5('kind ' || entity || type)::uuid, entity, type, case entity when 'Order' then '{Customer}'::text[] else '{}' end
    from unnest('{Product,Order,Customer}'::text[]) entity cross join unnest('{create,update,delete}'::text[]) type
    order by entity, type;
insert into change_actor (tenant, lookup, name)
  select 'acme', md5('actor ' || i)::uuid, 'user-' || i || '@acme.example' from generate_series(1, 40) i;
insert into change_entry (tenant, at, kind, actor, document, identity, entity_id, name, schema_version, related, paths)
  select 'acme', 1700000000000 + i * 7919000::bigint % 40000000000, 1 + i % 9, 1 + (i * 31 + i / 17) % 40,
         encode(substring(sha256(convert_to('id-' || i % 300, 'UTF8')) for 16), 'hex')::uuid, md5('entry ' || i)::uuid,
         'id-' || i % 300, case when i % 4 = 0 then 'Name ' || i end, case when i % 3 = 0 then '1.' || i % 7 end,
         case when i % 9 in (3, 4, 5) then '[{"entity":"Customer","entityId":"id-' || i % 50 || '"}]' end,
         '[{"path":"/price","before":' || i || '.10,"after":' || i + 1 || '}]'
    from generate_series(1, 4000) i;
insert into change_related (tenant, at, sequence, item, document, entity, entity_id)
  select 'acme', e.at, e.sequence, 1, encode(substring(sha256(convert_to(r ->> 'entityId', 'UTF8')) for 16), 'hex')::uuid,
         'Customer', r ->> 'entityId'
    from change_entry e cross join lateral json_array_elements(e.related::json) r where e.related is not null;
insert into change_delta (tenant, ats, kinds, actors)
  select 'acme', array_agg(at order by sequence), array_agg(kind order by sequence), array_agg(actor order by sequence)
    from change_entry where sequence <= 3500 group by sequence / 100;
insert into change_retention (tenant, keep_days, horizon) values ('acme', 20000, 1700006400000);
insert into custom_entity (tenant, id, version, document, fields)
  values ('acme', 'note', 1, '{"id":"note"}', '{"id":"note"}');
insert into custom_instance (tenant, type, id, version, document, fields)
  select 'acme', 'note', 'n' || i, 1, d.document, d.document::jsonb
    from generate_series(1, 60) i
    cross join lateral (
      select '{"id":"n' || i || '","rank":' || case i % 3 when 0 then i % 7 || '.50' when 1 then '"text ' || i % 11 || '"' else '[' || i || ']' end || '}'
    ) as d (document);
create index note_rank on custom_instance (tenant, type, sort_key(fields #> '{rank}', false), id);
insert into agent_request_log (tenant, id, document, fields)
  select 'acme', 'log-' || i, d.document, d.document::jsonb
    from generate_series(1, 5) i
    cross join lateral (select '{"id":"log-' || i || '","messages":[{"message":"Call 1 of the model"}]}') as d (document);
-- fold
insert into change_delta (tenant, ats, kinds, actors)
  select 'acme', array_agg(at order by sequence), array_agg(kind order by sequence), array_agg(actor order by sequence)
    from change_entry where sequence > 3500 group by sequence / 100;
