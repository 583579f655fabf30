import { CompiledQuery } from 'kysely';
import { uuidOf } from '../core/text-hash.ts';
import {
  CompositeArray,
  type CompositeField,
  composite,
  compositeField,
  int8Array,
  setElementType,
  textArray,
  uuidArray,
} from '../postgres/binary-arrays.ts';
import type { Connection, DatabaseTransaction } from '../postgres/database.ts';
import type { Change, RecordedBy } from './change.ts';
import { correlationColumns, entryColumns, hashOfActor, hashOfKind, relatedEntitiesOf } from './entry-columns.ts';

interface InsertedEntry {
  at: number;
  /** As a UUID with dashes. */
  identity: string;
}

/** A batch as `record_entries` takes it, built before its transaction begins. */
export interface BatchInput {
  readonly changes: readonly Change[];
  /** An array of `change_input`. */
  readonly entries: Buffer;
  /** The fields of `change_batch` before those of the recorder, and after them. */
  readonly shared: readonly CompositeField[];
  readonly people: readonly CompositeField[];
}

export function batchInput(tenant: string, changes: readonly Change[]): BatchInput {
  const { kind, actor, kinds, actors, documents, path, relatedItem } = entryColumns(tenant, changes);
  const array = new CompositeArray(15);
  for (const [index, change] of changes.entries()) {
    array.begin();
    array.int8(change.at);
    array.int4(kinds[index] as number);
    array.int4(actors[index] as number);
    array.uuid(documents[index] as Uint8Array);
    array.uuid(change.identity);
    array.int4s(path.ofEntries[index] as number[]);
    array.text(change.entityId);
    array.text(change.name);
    array.text(change.schemaVersion);
    array.text(relatedText(change));
    array.text(change.paths);
    array.text(change.marks);
    array.text(change.context);
    const [uuid, text] = correlationColumns(change.correlationId);
    array.uuid(uuid === null ? undefined : Buffer.from(uuid.replaceAll('-', ''), 'hex'));
    array.text(text ?? undefined);
  }
  const shared: CompositeField[] = [
    compositeField.uuids(kind.lookups),
    compositeField.texts(kind.entities),
    compositeField.texts(kind.types),
    compositeField.texts(kind.relatedEntities),
    compositeField.uuids(actor.lookups),
    compositeField.texts(actor.names),
    compositeField.int4s(path.numbers),
    compositeField.texts(path.entities),
    compositeField.texts(path.names),
    compositeField.int4(path.rest),
    compositeField.int4s(relatedItem.entries),
    compositeField.int4s(relatedItem.items),
    compositeField.uuids(relatedItem.documents),
    compositeField.texts(relatedItem.entities),
    compositeField.texts(relatedItem.entityIds),
  ];
  const people = [actor.ids, actor.behalfNames, actor.behalfIds].map(compositeField.texts);
  return { changes, entries: array.end(), shared, people };
}

function relatedText({ related }: Change): string | undefined {
  return related.length === 0
    ? undefined
    : JSON.stringify(related.map(({ entity, entityId }) => ({ entity, entityId })));
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
  { entries, shared, people }: BatchInput,
  recordedBy: RecordedBy,
): Promise<{ horizon: number; inserted: InsertedEntry[] | 'all'; hasErased: boolean }> {
  setElementType(entries, await inputType(transaction));
  const { rows } = await transaction.executeQuery<{
    horizon: number;
    complete: boolean;
    at: number | null;
    identity: string | null;
    has_erased: boolean;
  }>(
    CompiledQuery.raw(insertStatement, [
      tenant,
      now,
      entries,
      composite([...shared, ...recorderFields(recordedBy), ...people]),
    ]),
  );
  const [head] = rows;
  const hasErased = head?.has_erased ?? false;
  if (head?.complete) return { horizon: head.horizon, inserted: 'all', hasErased };
  const inserted = rows.flatMap(({ at, identity }) => (at === null || identity === null ? [] : [{ at, identity }]));
  return { horizon: head?.horizon ?? 0, inserted, hasErased };
}

function recorderFields({ way, by = '', person }: RecordedBy): CompositeField[] {
  const lookup = Buffer.from(lookupOfRecorder({ way, by, person }), 'hex');
  const name = person === undefined ? by : undefined;
  return [
    compositeField.text(way),
    compositeField.uuid(lookup),
    compositeField.text(name),
    compositeField.text(person?.issuer),
    compositeField.text(person?.subject),
  ];
}

/** The lookup hash of a recorder, in hexadecimal. */
export function lookupOfRecorder({ way, by = '', person }: RecordedBy): string {
  return uuidOf(JSON.stringify(person === undefined ? [way, by] : [way, by, person.issuer, person.subject]));
}

const insertStatement = `
select horizon, complete, at, identity, has_erased from record_entries($1, $2, $3, $4)`;

/** The OID of `change_input` in each database, by its pool. */
const inputTypes = new WeakMap<object, number>();

/** Cached, since a batch of one change is one round trip. No migration drops the type. */
async function inputType(transaction: DatabaseTransaction): Promise<number> {
  const pool = transaction.getExecutor().adapter;
  const known = inputTypes.get(pool);
  if (known !== undefined) return known;
  const { rows } = await transaction.executeQuery<{ oid: number }>(
    CompiledQuery.raw("select 'change_input'::regtype::oid::bigint as oid"),
  );
  const oid = rows[0]?.oid ?? 0;
  inputTypes.set(pool, oid);
  return oid;
}

/**
 * Whether the stored entries with the same identities and times have the same content; undefined if there is none.
 * Ignores marks and contexts of entries that predate them. Run it after the insert, as a separate statement that sees
 * concurrent inserts.
 */
export async function compareEntries(
  transaction: DatabaseTransaction,
  tenant: string,
  changes: readonly Change[],
): Promise<(boolean | undefined)[]> {
  const texts = (memberOf: (change: Change) => string | undefined) =>
    textArray(changes.map((change) => memberOf(change) ?? null));
  const { rows } = await transaction.executeQuery<{ same: boolean | null }>(
    CompiledQuery.raw(compareStatement, [
      tenant,
      int8Array(changes.map(({ at }) => at)),
      uuidArray(changes.map(({ identity }) => identity)),
      uuidArray(changes.map(({ entity, type, related }) => hashOfKind(entity, type, relatedEntitiesOf(related)))),
      uuidArray(changes.map(hashOfActor)),
      texts(({ entityId }) => entityId),
      texts(({ name }) => name),
      texts(({ schemaVersion }) => schemaVersion),
      texts(relatedText),
      texts(({ paths }) => paths),
      texts(({ marks }) => marks),
      texts(({ context }) => context),
      texts(({ correlationId, derived }) => (derived?.correlationId ? undefined : correlationId)),
      texts(({ actorId, derived }) => (derived?.actor ? actorId : undefined)),
      texts(({ onBehalfOf }) => onBehalfOf?.name),
      texts(({ onBehalfOf }) => onBehalfOf?.id),
    ]),
  );
  return rows.map((row) => row.same ?? undefined);
}

const compareStatement = `
select k.lookup = input.kind_lookup
       and (a.lookup = input.actor_lookup
            or coalesce(a.actor_id = input.id_of_actor, false)
               and (a.behalf_name, a.behalf_id) is not distinct from (input.behalf_name, input.behalf_id))
       and e.entity_id = input.entity_id
       and e.name is not distinct from input.name and e.schema_version is not distinct from input.schema_version
       and e.related is not distinct from input.related and e.paths = input.paths
       and (input.correlation is null or coalesce(e.correlation::text, e.correlation_text) is not distinct from input.correlation)
       and (e.recorded_by is not distinct from 0
            or e.marks is not distinct from input.marks and e.context is not distinct from input.context) as same
  from unnest($2::bigint[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
              $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[]) with ordinality
    as input (at, identity, kind_lookup, actor_lookup, entity_id, name, schema_version, related, paths, marks, context, correlation,
              id_of_actor, behalf_name, behalf_id, place)
  left join change_entry e on e.tenant = $1 and e.at = input.at and e.identity = input.identity
  left join change_kind k on k.tenant = e.tenant and k.kind = e.kind
  left join change_actor a on a.tenant = e.tenant and a.actor = e.actor
  order by input.place`;

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
