import { CompiledQuery } from 'kysely';
import { int4Array, int8Array, textArray, uuidArray } from '../postgres/binary-arrays.ts';
import type { DatabaseTransaction } from '../postgres/database.ts';
import type { RecordedBy } from './change.ts';
import { type EntryColumns, uuidOf } from './entry-columns.ts';

export interface InsertedEntry {
  at: number;
  /** In hexadecimal with dashes. */
  identity: string;
}

/** The parameters of a batch, made before its transaction begins. */
export type EntryParameters = readonly (Buffer | number)[];

export function entryParameters({ kind, actor, relatedItem, path, ...entries }: EntryColumns): EntryParameters {
  return [
    uuidArray(kind.lookups),
    textArray(kind.entities),
    textArray(kind.types),
    textArray(kind.relatedEntities),
    uuidArray(actor.lookups),
    textArray(actor.names),
    int8Array(entries.ats),
    int4Array(entries.kinds),
    int4Array(entries.actors),
    uuidArray(entries.documents),
    uuidArray(entries.identities),
    textArray(entries.entityIds),
    textArray(entries.names),
    textArray(entries.schemaVersions),
    textArray(entries.related),
    textArray(entries.paths),
    textArray(entries.marks),
    textArray(entries.contexts),
    int4Array(relatedItem.entries),
    int4Array(relatedItem.items),
    uuidArray(relatedItem.documents),
    textArray(relatedItem.entities),
    textArray(relatedItem.entityIds),
    textArray(path.ofEntries.map((numbers) => `{${numbers.join(',')}}`)),
    int4Array(path.numbers),
    textArray(path.entities),
    textArray(path.names),
    path.rest,
  ];
}

/**
 * Inserts the entries that are not there yet and not older than the tenant's horizon, with their related items, their new names, and
 * the delta for the tallies. It is one round trip. It registers a new name without waiting for another recorder that registers it
 * too. It names the inserted entries only where not all of them were inserted. `hasErased`: the tenant has erasures.
 */
export async function insertEntries(
  transaction: DatabaseTransaction,
  tenant: string,
  now: number,
  parameters: EntryParameters,
  recordedBy: RecordedBy,
): Promise<{ horizon: number; inserted: InsertedEntry[] | 'all'; hasErased: boolean }> {
  const { rows } = await transaction.executeQuery<{
    horizon: number;
    complete: boolean;
    at: number | null;
    identity: string | null;
    has_erased: boolean;
  }>(CompiledQuery.raw(insertStatement, [tenant, now, ...parameters, ...recorderParameters(recordedBy)]));
  const [head] = rows;
  const hasErased = head?.has_erased ?? false;
  if (head?.complete) return { horizon: head.horizon, inserted: 'all', hasErased };
  const inserted = rows.flatMap(({ at, identity }) => (at === null || identity === null ? [] : [{ at, identity }]));
  return { horizon: head?.horizon ?? 0, inserted, hasErased };
}

function recorderParameters({ way, by = '', person }: RecordedBy): readonly unknown[] {
  const { issuer = null, subject = null } = person ?? {};
  const lookup = lookupOfRecorder({ way, by, person });
  return [way, lookup, person === undefined ? by : null, issuer, subject];
}

/** The hash by which a recorder is looked up, in hexadecimal. */
export function lookupOfRecorder({ way, by = '', person }: RecordedBy): string {
  return uuidOf(JSON.stringify(person === undefined ? [way, by] : [way, by, person.issuer, person.subject]));
}

/** The statement is a function of the database, so a connection plans it once. */
const insertStatement = `
select horizon, complete, at, identity, has_erased from record_entries(
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
  $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35)`;

/**
 * Whether the stored entries with the same identities and times have the same content; undefined where there is none. Entries from
 * before marks and contexts are compared without them. Call it after the insert, in a statement of its own: another transaction may have inserted first.
 */
export async function compareEntries(
  transaction: DatabaseTransaction,
  tenant: string,
  columns: EntryColumns,
  places: readonly number[],
): Promise<(boolean | undefined)[]> {
  const only = <Value>(values: readonly Value[]) => places.map((place) => values[place] as Value);
  const rare = (values: readonly (string | null)[]) => places.map((place) => values[place] ?? null);
  const { rows } = await transaction.executeQuery<{ same: boolean | null }>(
    CompiledQuery.raw(compareStatement, [
      tenant,
      int8Array(only(columns.ats)),
      uuidArray(only(columns.identities)),
      uuidArray(only(columns.kinds).map((kind) => columns.kind.lookups[kind - 1] as Buffer)),
      uuidArray(only(columns.actors).map((actor) => columns.actor.lookups[actor - 1] as Buffer)),
      textArray(only(columns.entityIds)),
      textArray(only(columns.names)),
      textArray(only(columns.schemaVersions)),
      textArray(only(columns.related)),
      textArray(only(columns.paths)),
      textArray(rare(columns.marks)),
      textArray(rare(columns.contexts)),
    ]),
  );
  return rows.map((row) => row.same ?? undefined);
}

const compareStatement = `
select k.lookup = input.kind_lookup and a.lookup = input.actor_lookup and e.entity_id = input.entity_id
       and e.name is not distinct from input.name and e.schema_version is not distinct from input.schema_version
       and e.related is not distinct from input.related and e.paths = input.paths
       and (e.recorded_by is not distinct from 0
            or e.marks is not distinct from input.marks and e.context is not distinct from input.context) as same
  from unnest($2::bigint[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
              $11::text[], $12::text[]) with ordinality
    as input (at, identity, kind_lookup, actor_lookup, entity_id, name, schema_version, related, paths, marks, context, place)
  left join change_entry e on e.tenant = $1 and e.at = input.at and e.identity = input.identity
  left join change_kind k on k.tenant = e.tenant and k.kind = e.kind
  left join change_actor a on a.tenant = e.tenant and a.actor = e.actor
  order by input.place`;
