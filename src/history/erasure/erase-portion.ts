import { sql } from 'kysely';
import { hashOf } from '../../core/text-hash.ts';
import { int8Array, textArray, uuidArray } from '../../postgres/binary-arrays.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { refuseHeld } from '../../postgres/tenants/tenants.ts';
import { readCommitted } from '../../proof/log/entry-store.ts';
import type { CommittedEntry, FieldLabel } from '../../proof/log/fields.ts';
import { lockProof } from '../../proof/log/log-store.ts';
import type { ErasureKey } from '../../recording/erased-changes.ts';
import type { CompiledRules } from '../../recording/mapping/apply-rules.ts';
import { entriesOfRow } from '../../recording/positions.ts';
import { rangesOf, writeReceipt } from '../../recording/receipt-store.ts';
import { forgetNames } from '../documents/name-documents.ts';
import type { Place } from '../entries/entry-store.ts';
import type { SubjectActors } from './find-subject.ts';
import { unnested } from './own-entries.ts';
import { type RedactedEntry, redactProof } from './redact-proof.ts';
import { type ErasableEntry, type RewrittenEntry, rewriteEntry } from './rewrite-entry.ts';
import type { ErasureReason, SealedSubject, Subject } from './subject.ts';

/** Limits of a transaction: entries, and bytes of their texts. */
const maxEntries = 200;
const maxBytes = 8 * 1024 * 1024;

/** An erasure that is under way. */
export interface Erasing extends SealedSubject {
  readonly tenant: string;
  readonly erasure: string;
  readonly reason: ErasureReason;
  readonly key: ErasureKey;
  /** Additional paths to erase, by entity type. */
  readonly rules: ReadonlyMap<string, CompiledRules>;
  readonly now: () => number;
  /** Numbers of change_recorder whose names are erased. */
  readonly recorders: readonly number[];
  /** Rows of change_actor with the subject. */
  readonly actors: SubjectActors;
  /** Entries of Annals' own objects that name the subject. */
  readonly own: readonly Place[];
  /** Entries to look at instead of all. */
  readonly only?: readonly Place[] | undefined;
}

type Searched = Pick<Erasing, 'tenant' | 'subject' | 'recorders' | 'actors' | 'own' | 'only'>;

export interface FoundEntry extends ErasableEntry, Place {
  readonly identity: string;
  readonly document: string;
}

/**
 * Erases the subject in the next entries after a place, with the receipt of their positions, in this transaction.
 * Entries that are not folded yet are left. Returns where to continue. Throws an OperatorError if the tenant is on
 * hold.
 */
export async function erasePortion(
  transaction: DatabaseTransaction,
  erasing: Erasing,
  after: Place | undefined,
): Promise<{ entries: number; reached: Place | undefined }> {
  const { tenant, erasure } = erasing;
  await refuseHeld(transaction, tenant);
  // Entries must not be sealed while their proof is rewritten.
  await lockProof(transaction, tenant);
  const found = await readPortion(transaction, erasing, after);
  if (found.length === 0) return { entries: 0, reached: undefined };
  const rewritten = found.map((entry) => rewriteEntry(entry, erasing, erasing.rules));
  const positions = await readPositions(transaction, tenant, found);
  const committed = await readCommitted(transaction, tenant, found, Number.MAX_SAFE_INTEGER);
  await writeEntries(transaction, erasing, found, rewritten);
  await redactEntries(transaction, erasing, { found, positions, committed });
  if ('entity' in erasing.subject) await writeRelated(transaction, erasing, found);
  const documents = found.flatMap(({ document }, place) =>
    rewritten[place]?.name === found[place]?.name ? [] : [document],
  );
  await forgetNames(transaction, tenant, [...new Set(documents)]);
  await sql`update change_erasure set entries = entries + ${found.length}
    where tenant = ${tenant} and erasure = ${erasure}::uuid`.execute(transaction);
  await noteErased(
    transaction,
    erasing,
    positions.filter((position) => position !== undefined),
  );
  const { at, sequence } = found.at(-1) ?? { at: 0, sequence: 0 };
  return { entries: found.length, reached: { at, sequence } };
}

/** Writes the receipt of an erasure at these positions. */
export async function noteErased(
  transaction: DatabaseTransaction,
  { tenant, erasure, reason, now }: Erasing,
  positions: readonly number[],
): Promise<void> {
  await writeReceipt(transaction, tenant, {
    what: 'erasure',
    positions: rangesOf(positions.toSorted((a, b) => a - b)),
    at: new Date(now()).toISOString(),
    by: 'operator',
    reason,
    erasure,
  });
}

/** The number of entries that still have the subject. */
export async function countEntries(db: Database, searched: Searched): Promise<number> {
  const { rows } = await sql<{ entries: number }>`
    select count(*) as entries from (${entriesOfSubject(searched)}) as found`.execute(db);
  return rows[0]?.entries ?? 0;
}

/** SQL: the entries that still have the subject. */
function entriesOfSubject(searched: Searched) {
  if (searched.only !== undefined) {
    return sql`select o.at, o.sequence from ${unnested(searched.only)} as o (at, sequence)`;
  }
  return sql`${entriesByName(searched)}
    union select o.at, o.sequence from ${unnested(searched.own)} as o (at, sequence)`;
}

function entriesByName({ tenant, subject, actors, recorders }: Searched) {
  if (!('entity' in subject)) {
    return sql`
      ${sql.join(entriesOfActors(tenant, actors), sql` union `)}
      ${recorders.length === 0 ? sql`` : sql`union ${recordedBy(tenant, recorders)}`}`;
  }
  const document = uuidArray([hashOf(subject.entityId)]);
  return sql`
    select e.at, e.sequence from change_entry e
      join change_kind k on k.tenant = ${tenant} and k.kind = e.kind
      where e.tenant = ${tenant} and e.document = any (${document}::uuid[]) and k.entity = ${subject.entity}
        and e.entity_id = ${subject.entityId}
    union
    select r.at, r.sequence from change_related r
      where r.tenant = ${tenant} and r.document = any (${document}::uuid[]) and r.entity = ${subject.entity}
        and r.entity_id = ${subject.entityId}`;
}

function entriesOfActors(tenant: string, actors: SubjectActors) {
  return actorParts.map(
    ([numbers, mark]) => sql`
      select e.at, e.sequence from change_entry e
        where e.tenant = ${tenant} and e.actor = any (${int8Array(actors[numbers])}::bigint[])
          and (e.erased is null or position(${mark}::text in e.erased) = 0)`,
  );
}

/** The rows of the dictionary, and what their entries have in `erased`, with its quotation marks. */
const actorParts = [
  ['names', '"actor"'],
  ['ids', '"actorId"'],
  ['behalfNames', '"onBehalfOf.name"'],
  ['behalfIds', '"onBehalfOf"'],
] as const satisfies readonly (readonly [keyof SubjectActors, string])[];

/** SQL: which parts of the actor of an entry `e` go, as columns. */
export function actorColumns({ names, ids, behalfNames, behalfIds }: SubjectActors) {
  const isOf = (...numbers: (readonly number[])[]) => sql`e.actor = any (${int8Array(numbers.flat())}::bigint[])`;
  return sql`${isOf(names, ids)} as "isOfActor", ${isOf(ids)} as "isOfActorId",
    ${isOf(behalfNames, behalfIds)} as "isOnBehalf", ${isOf(behalfIds)} as "isOnBehalfId"`;
}

function recordedBy(tenant: string, recorders: readonly number[]) {
  return sql`select e.at, e.sequence from change_entry e
    where e.tenant = ${tenant} and e.recorded_by = any (${recorders}::bigint[])
      and (e.erased is null or position('"recordedBy"' in e.erased) = 0)`;
}

/** The next entries after a place. Those that are not folded yet are left out. */
export async function readPortion(
  transaction: DatabaseTransaction,
  erasing: Searched,
  after: Place | undefined,
): Promise<FoundEntry[]> {
  const { tenant, recorders, actors, own } = erasing;
  const behind =
    after === undefined ? sql`` : sql`where (s.at, s.sequence) > (${after.at}::bigint, ${after.sequence}::bigint)`;
  const { rows: places } = await sql<Place & { bytes: number }>`
    with waiting as materialized (
      select entry.at, entry.sequence from change_delta d
        cross join lateral unnest(d.ats, d.sequences) as entry (at, sequence) where d.tenant = ${tenant}
    ), portion as materialized (
      select s.at, s.sequence from (${entriesOfSubject(erasing)}) as s ${behind}
        order by s.at, s.sequence limit ${maxEntries}::integer
    )
    select portion.at, portion.sequence, octet_length(e.paths)::bigint as bytes
      from portion
      join change_entry e on e.tenant = ${tenant} and e.at = portion.at and e.sequence = portion.sequence
      left join waiting w on w.at = portion.at and w.sequence = portion.sequence
      where w.at is null
      order by portion.at, portion.sequence`.execute(transaction);
  let bytes = 0;
  const fitting = places.filter((place) => {
    bytes += place.bytes;
    return bytes - place.bytes < maxBytes;
  });
  const { rows } = await sql<Omit<FoundEntry, 'isOfService'>>`
    select e.at, e.sequence, replace(e.identity::text, '-', '') as identity, e.document::text as document, k.entity,
           e.entity_id as "entityId", e.name, e.related, e.paths, e.context, e.erased,
           ${actorColumns(actors)},
           coalesce(e.recorded_by = any (${recorders}::bigint[]), false) as "isOfRecorder"
      from ${unnested(fitting)} as place (at, sequence)
      join change_entry e on e.tenant = ${tenant} and e.at = place.at and e.sequence = place.sequence
      join change_kind k on k.tenant = ${tenant} and k.kind = e.kind
      order by e.at, e.sequence`.execute(transaction);
  const owned = new Set(own.map(keyOf));
  return rows.map((row) => ({ ...row, isOfService: owned.has(keyOf(row)) }));
}

function keyOf({ at, sequence }: Place): string {
  return `${at} ${sequence}`;
}

async function writeEntries(
  transaction: DatabaseTransaction,
  { tenant, key }: Erasing,
  found: readonly FoundEntry[],
  rewritten: readonly RewrittenEntry[],
): Promise<void> {
  // Entries that were erased before have a keyed identity already, unless only their recorder was erased.
  const identities = found.map(({ identity, erased }, place) => {
    const bytes = Buffer.from(identity, 'hex');
    return hasOldIdentity(erased) && !hasOldIdentity(rewritten[place]?.erased ?? null)
      ? key.hashOf(tenant, 'identity', bytes)
      : bytes;
  });
  const textOf = (member: keyof RewrittenEntry) => sql`${textArray(rewritten.map((entry) => entry[member]))}::text[]`;
  await sql`
    update change_entry e
      set identity = w.identity, document = w.document, entity_id = w.entity_id, name = w.name, related = w.related,
          paths = w.paths, context = w.context, erased = w.erased
      from rows from (${unnested(found)}, unnest(
        ${uuidArray(identities)}::uuid[], ${uuidArray(rewritten.map(({ entityId }) => hashOf(entityId)))}::uuid[],
        ${textOf('entityId')}, ${textOf('name')}, ${textOf('related')}, ${textOf('paths')}, ${textOf('context')},
        ${textOf('erased')})) as w (at, sequence, identity, document, entity_id, name, related, paths, context, erased)
      where e.tenant = ${tenant} and e.at = w.at and e.sequence = w.sequence`.execute(transaction);
}

function hasOldIdentity(erased: string | null): boolean {
  return erased === null || erased === '["recordedBy"]';
}

async function writeRelated(
  transaction: DatabaseTransaction,
  { tenant, subject, replacement }: Erasing,
  found: readonly FoundEntry[],
): Promise<void> {
  if (!('entity' in subject)) return;
  await sql`
    update change_related r
      set entity_id = ${replacement}, document = (${uuidArray([hashOf(replacement)])}::uuid[])[1]
      from ${unnested(found)} as w (at, sequence)
      where r.tenant = ${tenant} and r.at = w.at and r.sequence = w.sequence and r.entity = ${subject.entity}
        and r.entity_id = ${subject.entityId}`.execute(transaction);
}

/** The position of each entry; undefined if it has none yet. */
async function readPositions(
  transaction: DatabaseTransaction,
  tenant: string,
  places: readonly Place[],
): Promise<(number | undefined)[]> {
  const { rows } = await sql<{ position: number; place: number }>`
    select p.first + entry.number - 1 as position, w.place
      from change_position p
      cross join lateral ${entriesOfRow} as entry
      join ${unnested(places)} with ordinality as w (at, sequence, place)
        on w.at = entry.at and w.sequence = entry.sequence
      where p.tenant = ${tenant} and p.oldest <= ${places.at(-1)?.at ?? 0}::bigint and p.newest >= ${places[0]?.at ?? 0}::bigint`.execute(
    transaction,
  );
  const positions = new Map(rows.map(({ place, position }) => [place, position]));
  return places.map((_place, index) => positions.get(index + 1));
}

/** Redacts the proof of the entries, which are rewritten already. */
async function redactEntries(
  transaction: DatabaseTransaction,
  { tenant, subject }: Erasing,
  {
    found,
    positions,
    committed,
  }: {
    found: readonly FoundEntry[];
    positions: readonly (number | undefined)[];
    committed: readonly (CommittedEntry | null)[];
  },
): Promise<void> {
  const after = await readCommitted(transaction, tenant, found, Number.MAX_SAFE_INTEGER);
  const entries = found.flatMap((entry, place): RedactedEntry[] => {
    const [position, before, now] = [positions[place], committed[place], after[place]];
    if (position === undefined || !before || !now) return [];
    const sealed = [before, ...otherNames(before, entry, subject)];
    return [{ position, sealed, after: now, hidden: hiddenNames(before, entry) }];
  });
  await redactProof(transaction, tenant, entries);
}

type NamesOfEntry = Pick<FoundEntry, 'isOfActor' | 'isOfActorId' | 'isOnBehalf' | 'isOnBehalfId' | 'isOfRecorder'>;

/** The fields of names and ids to hide. They are in dictionaries, which are erased after all entries. */
export function hiddenNames(
  { onBehalfOfName }: CommittedEntry,
  { isOfActor, isOfActorId, isOnBehalf, isOnBehalfId, isOfRecorder }: NamesOfEntry,
): ReadonlySet<FieldLabel> {
  const hidden = new Set<FieldLabel>();
  if (isOfActor) hidden.add('actor');
  if (isOfActorId) hidden.add('actorId');
  if (isOnBehalf && onBehalfOfName !== null) hidden.add('onBehalfOfName');
  if (isOnBehalfId) hidden.add('onBehalfOfId');
  if (isOfRecorder) hidden.add('recordedBy');
  return hidden;
}

/** The entry as it was before the dictionary was erased, if it was sealed so. */
function otherNames(
  entry: CommittedEntry,
  { isOfActor, isOnBehalf }: NamesOfEntry,
  subject: Subject,
): CommittedEntry[] {
  if (!('actor' in subject)) return [];
  const { actor } = subject;
  return [{ ...entry, ...(isOfActor && { actor }), ...(isOnBehalf && { onBehalfOfName: actor }) }];
}
