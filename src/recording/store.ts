import { CompiledQuery } from 'kysely';
import { int4Array, int8Array, textArray, uuidArray } from '../postgres/binary-arrays.ts';
import type { Connection, DatabaseTransaction } from '../postgres/database.ts';
import type { Change, RecordedBy } from './change.ts';
import { type EntryColumns, uuidOf } from './entry-columns.ts';

/** The identities, in hexadecimal, of the changes already recorded. */
export async function recordedIdentities(
  db: Connection,
  tenant: string,
  changes: readonly Pick<Change, 'at' | 'identity'>[],
): Promise<ReadonlySet<string>> {
  const { rows } = await db.executeQuery<{ identity: string }>(
    CompiledQuery.raw(identitiesStatement, [
      tenant,
      int8Array(changes.map(({ at }) => at)),
      uuidArray(changes.map(({ identity }) => identity)),
    ]),
  );
  return new Set(rows.map(({ identity }) => identity.replaceAll('-', '')));
}

const identitiesStatement = `
select e.identity::text from unnest($2::bigint[], $3::uuid[]) as input (at, identity)
  join change_entry e on e.tenant = $1 and e.at = input.at and e.identity = input.identity`;

export interface InsertedEntry {
  at: number;
  /** As a UUID with dashes. */
  identity: string;
}

/** The parameters of a batch, built before its transaction begins. */
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
 * Inserts new entries that are not older than the tenant's horizon, with their related items, names and delta, in one
 * round trip. Does not wait for recorders that register the same names. Lists the inserted entries only if some were
 * not inserted. `hasErased`: the tenant has erasures.
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

/** The lookup hash of a recorder, in hexadecimal. */
export function lookupOfRecorder({ way, by = '', person }: RecordedBy): string {
  return uuidOf(JSON.stringify(person === undefined ? [way, by] : [way, by, person.issuer, person.subject]));
}

/** A database function, so that a connection plans it once. */
const insertStatement = `
select horizon, complete, at, identity, has_erased from record_entries(
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
  $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35)`;

/**
 * Whether the stored entries with the same identities and times have the same content; undefined if there is none.
 * Ignores marks and contexts of entries that predate them. Run it after the insert, as a separate statement that sees
 * concurrent inserts.
 */
export async function compareEntries(
  transaction: DatabaseTransaction,
  tenant: string,
  columns: EntryColumns,
  indexes: readonly number[],
): Promise<(boolean | undefined)[]> {
  const pick = <Value>(values: readonly Value[]) => indexes.map((place) => values[place] as Value);
  const pickOrNull = (values: readonly (string | null)[]) => indexes.map((place) => values[place] ?? null);
  const { rows } = await transaction.executeQuery<{ same: boolean | null }>(
    CompiledQuery.raw(compareStatement, [
      tenant,
      int8Array(pick(columns.ats)),
      uuidArray(pick(columns.identities)),
      uuidArray(pick(columns.kinds).map((kind) => columns.kind.lookups[kind - 1] as Buffer)),
      uuidArray(pick(columns.actors).map((actor) => columns.actor.lookups[actor - 1] as Buffer)),
      textArray(pick(columns.entityIds)),
      textArray(pick(columns.names)),
      textArray(pick(columns.schemaVersions)),
      textArray(pick(columns.related)),
      textArray(pick(columns.paths)),
      textArray(pickOrNull(columns.marks)),
      textArray(pickOrNull(columns.contexts)),
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
