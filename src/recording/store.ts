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

/** The statement itself is a function of the database, so that it is planned once for a connection. */
const insertStatement = `
select horizon, at, identity from record_entries(
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`;

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
