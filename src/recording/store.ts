import { CompiledQuery } from 'kysely';
import type { DatabaseTransaction } from '../db/database.ts';
import type { EntryColumns } from './entry-columns.ts';

export interface InsertedEntry {
  at: number;
  identity: string;
}

/**
 * Inserts those entries that are not there yet and are not older than the tenant's horizon, with their related
 * items, what names they use for the first time, and the delta that tells the tallies of them. Each statement is
 * one round trip; a new name is registered without waiting for another recorder that registers it too.
 */
export async function insertEntries(
  transaction: DatabaseTransaction,
  tenant: string,
  now: number,
  columns: EntryColumns,
): Promise<{ horizon: number; inserted: InsertedEntry[] }> {
  const { rows } = await transaction.executeQuery<{ horizon: number; at: number | null; identity: string | null }>(
    CompiledQuery.raw(insertStatement, [
      tenant,
      now,
      columns.kinds.map((kind) => kind.lookup),
      columns.kinds.map((kind) => kind.entity),
      columns.kinds.map((kind) => kind.type),
      columns.kinds.map((kind) => JSON.stringify(kind.relatedEntities)),
      columns.actors.map((actor) => actor.lookup),
      columns.actors.map((actor) => actor.name),
      columns.entries.map((entry) => entry.at),
      columns.entries.map((entry) => entry.kind),
      columns.entries.map((entry) => entry.actor),
      columns.entries.map((entry) => entry.document),
      columns.entries.map((entry) => entry.identity),
      columns.entries.map((entry) => entry.entityId),
      columns.entries.map((entry) => entry.name),
      columns.entries.map((entry) => entry.schemaVersion),
      columns.entries.map((entry) => entry.related),
      columns.entries.map((entry) => entry.paths),
    ]),
  );
  const horizon = rows[0]?.horizon ?? 0;
  const inserted = rows.flatMap(({ at, identity }) => (at === null || identity === null ? [] : [{ at, identity }]));
  return { horizon, inserted };
}

const insertStatement = `
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
      (tenant, at, kind, actor, document, identity, entity_id, name, schema_version, related, paths)
    select $1, input.at, kind.ids[input.kind], actor.ids[input.actor], input.document, input.identity,
           input.entity_id, input.name, input.schema_version, input.related, input.paths
      from unnest($9::bigint[], $10::integer[], $11::integer[], $12::uuid[], $13::uuid[], $14::text[], $15::text[],
                  $16::text[], $17::text[], $18::text[]) with ordinality
        as input (at, kind, actor, document, identity, entity_id, name, schema_version, related, paths, place)
      cross join horizon cross join kind cross join actor
      where input.at >= horizon.since
      order by input.place
    on conflict (tenant, at, identity) do nothing
    returning at, sequence, kind, actor, identity, related
), delta as (
  insert into change_delta (tenant, ats, kinds, actors)
    select $1, array_agg(at), array_agg(kind), array_agg(actor) from entry having count(*) > 0
), related as (
  insert into change_related (tenant, at, sequence, item, document, entity, entity_id)
    select $1, entry.at, entry.sequence, row_number() over (partition by entry.at, entry.sequence), change_document(item.entity_id),
           item.entity, item.entity_id
      from entry
      cross join lateral (
        select distinct r ->> 'entity', r ->> 'entityId' from json_array_elements(entry.related::json) as r
      ) as item (entity, entity_id)
      where entry.related is not null
)
select horizon.since as horizon, entry.at, entry.identity from horizon left join entry on true`;

/**
 * Whether the entries that stand under the same identities and times say the same as these; undefined where there
 * is none. To be asked after the insert, in a statement of its own: another transaction may have been quicker.
 */
export async function compareEntries(
  transaction: DatabaseTransaction,
  tenant: string,
  columns: EntryColumns,
  places: readonly number[],
): Promise<(boolean | undefined)[]> {
  const entries = places.flatMap((place) => columns.entries[place] ?? []);
  const { rows } = await transaction.executeQuery<{ same: boolean | null }>(
    CompiledQuery.raw(compareStatement, [
      tenant,
      entries.map((entry) => entry.at),
      entries.map((entry) => entry.identity),
      entries.map((entry) => columns.kinds[entry.kind - 1]?.lookup),
      entries.map((entry) => columns.actors[entry.actor - 1]?.lookup),
      entries.map((entry) => entry.entityId),
      entries.map((entry) => entry.name),
      entries.map((entry) => entry.schemaVersion),
      entries.map((entry) => entry.related),
      entries.map((entry) => entry.paths),
    ]),
  );
  return rows.map((row) => row.same ?? undefined);
}

const compareStatement = `
select k.lookup = input.kind_lookup and a.lookup = input.actor_lookup and e.entity_id = input.entity_id
       and e.name is not distinct from input.name and e.schema_version is not distinct from input.schema_version
       and e.related is not distinct from input.related and e.paths = input.paths as same
  from unnest($2::bigint[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[])
    with ordinality
    as input (at, identity, kind_lookup, actor_lookup, entity_id, name, schema_version, related, paths, place)
  left join change_entry e on e.tenant = $1 and e.at = input.at and e.identity = input.identity
  left join change_kind k on k.tenant = e.tenant and k.kind = e.kind
  left join change_actor a on a.tenant = e.tenant and a.actor = e.actor
  order by input.place`;
