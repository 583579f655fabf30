-- The history that the benchmarks ask, as one would write it without Annals: $entries entries over the 60 days before $now
-- (milliseconds since 1970), 80 % of them of the tenant `big`. It comes as histories come:
--   * two bursts, each of 50,000 entries in one minute (a twelfth of all entries at most);
--   * one human actor makes 40 % of the changes and the system a tenth; 8,000 others share the rest unevenly;
--   * 10 entity types with most changes, and the type `warehouse` with three of the tenant's entries;
--   * 2 % of the entries arrive up to a week late;
--   * everybody but the system has an id, eleven entries in a row share a correlation id, five of a tenant on average, and every fourth has an address;
--   * 500,000 ids, each of which several entity types use; the id `shared` has some 1,700 entries of the tenant in the last
--     30 days, of all ten types, and the related group `hot` has some 20,000, however many entries there are;
--   * four changed paths an entry: all have `metadata.version`, 30 % `price.amount`, 20 % `status`, 5 % one of ten below
--     `address`, 10 % a place in `items`, one in 20,000 `legacyCode`, and each one of 60 `fields` and of 37 `labels`.
set work_mem = '256MB';
set maintenance_work_mem = '1GB';

create table plain (
  tenant text collate "C" not null,
  at timestamptz not null,
  id bigint not null,
  type text collate "C" not null,
  entity text collate "C" not null,
  entity_id text collate "C" not null,
  name text collate "C",
  actor text collate "C" not null,
  -- drawn from the others, so that these stay what they were
  actor_id text collate "C" generated always as (case when actor <> 'system' then 'u-' || substr(md5(actor), 1, 8) end) stored,
  correlation uuid generated always as (md5('c' || id / 11)::uuid) stored,
  ip text collate "C" generated always as (case when id % 4 = 0 then '10.0.' || id / 256 % 256 || '.' || id % 256 end) stored,
  related jsonb,
  paths jsonb not null
) with (autovacuum_enabled = false);

select setseed(0.42);
-- One process draws the numbers, so that they are the same at every run.
set max_parallel_workers_per_gather = 0;
insert into plain (tenant, at, id, type, entity, entity_id, name, actor, related, paths)
  select case when i in ($entries / 2 + 1, $entries * 7 / 8, $entries - 1) or tenant < 0.8 then 'big'
              when tenant < 0.95 then 'middle'
              else 'little' end,
         to_timestamp(floor(moment - case when late < 0.02 then late * 50 * 7 * 86400000 else 0 end) / 1000.0),
         i,
         (array['update', 'update', 'update', 'update', 'create', 'delete'])[1 + floor(random() * 6)::int],
         case when i in ($entries / 2 + 1, $entries * 7 / 8, $entries - 1) then 'warehouse' else
           (array['order', 'customer', 'company', 'product', 'segment', 'group', 'group-assignment', 'coupon', 'quote',
                  'site'])[1 + floor(power(random(), 1.5) * 10)::int] end,
         case when hot < 1714 / ($entries * 0.4) then 'shared' else 'd' || floor(power(random(), 1.2) * 500000)::int end,
         'Document ' || (i % 1000),
         case when person < 0.4 then 'Mia Lang' when person < 0.5 then 'system' else
           (array['Jane', 'John', 'Ana', 'Zoë', 'Li', 'Omar', 'Nina', 'Paul', 'Ida', 'Max'])[1 + actor % 10] || ' '
           || (array['Doe', 'Smith', 'Weber', 'Rossi', 'Kim', 'Novak', 'Silva', 'Berg'])[1 + (actor / 10) % 8] || ' '
           || lpad((actor / 80)::text, 2, '0')
         end,
         case when hot > 1 - 20000 / ($entries * 0.4) then '[{"entity":"group","entityId":"hot"}]'
           when random() < 0.2 then
           jsonb_build_array(jsonb_build_object('entity', 'group', 'entityId', 'g' || floor(random() * 2000)::int))
           || case when random() < 0.5
                then jsonb_build_array(jsonb_build_object('entity', 'customer', 'entityId', 'c' || floor(random() * 50000)::int))
                else '[]' end
         end,
         (
           '{"metadata.version":{"before":' || (i % 50) || ',"after":' || (1 + i % 50) || '}'
           || case when mixed % 100 < 30
                then ',"price.amount":{"before":' || (i % 997) || '.5,"after":' || (i % 991) || '.25}' else '' end
           || case when mixed / 100 % 100 < 20
                then ',"status":{"before":"OPEN","after":"' || (array['PAID', 'SENT', 'CLOSED', 'HELD'])[1 + i % 4] || '"}'
                else '' end
           || case when mixed / 10000 % 100 < 5
                then ',"address.' || (array['street', 'zip', 'city', 'country', 'phone', 'company', 'state', 'floor', 'door',
                                            'note'])[1 + i % 10] || '":{"before":"a' || i || '","after":"b' || i || '"}'
                else '' end
           || case when other % 100 < 10
                then ',"items.' || other / 100 % 200 || '.quantity":{"before":' || (i % 7) || ',"after":' || (1 + i % 9) || '}'
                else '' end
           || case when other / 1000 % 20000 = 0 then ',"legacyCode":{"before":"x","after":"y"}' else '' end
           || ',"fields.f' || floor(power((other % 10007) / 10007.0, 2) * 60)::int || 'x":{"before":null,"after":"v' || i || '"}'
           || ',"labels.l' || (mixed % 37) || 'x":{"before":"v' || (i % 11) || '","after":"v' || (i % 13) || '"}}'
         )::jsonb
    from (
      select i, hashint8(i)::bigint & 2147483647 as mixed, hashint8(i + 1000000007)::bigint & 2147483647 as other,
             random() as tenant, floor(power(random(), 1.5) * 8000)::int as actor, random() as person, random() as late,
             random() as hot,
             $now - 60 * 86400000.0 + case
               when i > 0.70 * $entries and i <= 0.70 * $entries + $burst
                 then 42 * 86400000.0 + (i - 0.70 * $entries) * (60000.0 / $burst)
               when i > 0.93 * $entries and i <= 0.93 * $entries + $burst
                 then 55.8 * 86400000.0 + (i - 0.93 * $entries) * (60000.0 / $burst)
               else i * (60 * 86400000.0 / $entries)
             end as moment
        from generate_series(1, $entries) as i
    ) as drawn;
