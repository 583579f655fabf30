-- The history that the benchmark asks: $entries entries over the 60 days before $now (milliseconds since 1970), 60 % of
-- them of the tenant `big`; 8,000 actors besides the system, which makes a tenth of the changes, 10 entity types, 500,000
-- documents, one entry in five with related items; a few actors, types and documents have most of the changes, as
-- everywhere. Two copies: `plain`, as one would write it without Annals, with the indexes that one would give it, and the
-- tables of Annals.
set work_mem = '256MB';
set maintenance_work_mem = '1GB';
set max_parallel_workers_per_gather = 0;

create unlogged table plain (
  tenant text collate "C" not null,
  at timestamptz not null,
  id bigint not null,
  type text collate "C" not null,
  entity text collate "C" not null,
  entity_id text collate "C" not null,
  name text collate "C",
  actor text collate "C" not null,
  related jsonb,
  paths text not null
);

select setseed(0.42);
insert into plain
  select case when tenant < 0.6 then 'big' when tenant < 0.85 then 'middle' else 'little' end,
         to_timestamp(floor($now - 60 * 86400000.0 + i * (60 * 86400000.0 / $entries)) / 1000.0),
         i,
         (array['update', 'update', 'update', 'update', 'create', 'delete'])[1 + floor(random() * 6)::int],
         (array['order', 'customer', 'company', 'product', 'segment', 'group', 'group-assignment', 'coupon', 'quote',
                'site'])[1 + floor(power(random(), 1.5) * 10)::int],
         'd' || floor(power(random(), 1.2) * 500000)::int,
         'Document ' || (i % 1000),
         case when random() < 0.1 then 'system' else
           (array['Jane', 'John', 'Ana', 'Zoë', 'Li', 'Omar', 'Nina', 'Paul', 'Ida', 'Max'])[1 + actor % 10] || ' '
           || (array['Doe', 'Smith', 'Weber', 'Rossi', 'Kim', 'Novak', 'Silva', 'Berg'])[1 + (actor / 10) % 8] || ' '
           || lpad((actor / 80)::text, 2, '0')
         end,
         case when random() < 0.2 then
           jsonb_build_array(jsonb_build_object('entity', 'group', 'entityId', 'g' || floor(random() * 2000)::int))
           || case when random() < 0.5
                then jsonb_build_array(jsonb_build_object('entity', 'customer', 'entityId', 'c' || floor(random() * 50000)::int))
                else '[]' end
         end,
         '{"price.amount":{"before":' || (i % 997) || '.5,"after":' || (i % 991) || '.25},"metadata.version":{"before":'
           || (i % 50) || ',"after":' || (1 + i % 50) || '}}'
    from (
      select i, random() as tenant, floor(power(random(), 1.5) * 8000)::int as actor from generate_series(1, $entries) as i
    ) as drawn;

insert into change_kind (tenant, lookup, entity, type, related_entities)
  select distinct tenant, gen_random_uuid(), entity, type, related_entities
    from (
      select distinct tenant, entity, type,
             array(select distinct item ->> 'entity' from jsonb_array_elements(related) as item) as related_entities
        from plain
    ) as kind;
insert into change_actor (tenant, lookup, name)
  select tenant, gen_random_uuid(), actor from (select distinct tenant, actor from plain) as named;

create table dropped_index as
  select indexdef from pg_indexes
    where tablename in ('change_entry', 'change_related') and indexname not like '%_pkey';
do $$
declare
  name text;
begin
  for name in select indexname from pg_indexes where tablename in ('change_entry', 'change_related') and indexname not like '%_pkey' loop
    execute format('drop index %I', name);
  end loop;
end
$$;
insert into change_entry (tenant, at, kind, actor, document, identity, entity_id, name, related, paths)
  select p.tenant, round(extract(epoch from p.at) * 1000)::bigint, k.kind, a.actor, change_document(p.entity_id),
         md5(p.id::text)::uuid, p.entity_id, p.name, p.related::text, p.paths
    from plain p
    join change_actor a on a.tenant = p.tenant and a.name = p.actor
    join change_kind k on k.tenant = p.tenant and k.entity = p.entity and k.type = p.type
     and k.related_entities = array(select distinct item ->> 'entity' from jsonb_array_elements(p.related) as item)
    order by p.id;
insert into change_related (tenant, at, sequence, item, document, entity, entity_id)
  select e.tenant, e.at, e.sequence, item.place, change_document(item.item ->> 'entityId'), item.item ->> 'entity',
         item.item ->> 'entityId'
    from change_entry e
    cross join lateral json_array_elements(e.related::json) with ordinality as item (item, place)
    where e.related is not null;
do $$
declare
  definition text;
begin
  for definition in select indexdef from dropped_index loop
    execute definition;
  end loop;
end
$$;
drop table dropped_index;

create index plain_at on plain (tenant, at);
create index plain_entity on plain (tenant, entity, at);
create index plain_document on plain (tenant, entity, entity_id, at);
create index plain_actor on plain (tenant, actor, at);
create index plain_related on plain using gin (related jsonb_path_ops);

insert into change_delta (tenant, ats, kinds, actors)
  select tenant, array_agg(at), array_agg(kind), array_agg(actor) from change_entry group by tenant, at / 86400000;
