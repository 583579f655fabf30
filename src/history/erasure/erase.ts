// Long, since an erasure is one sequence of steps whose order makes it safe to repeat.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import { parsePathPattern } from '../../core/path-pattern.ts';
import type { Sealer } from '../../core/sealing.ts';
import { int8Array, uuidArray } from '../../postgres/binary-arrays.ts';
import type { Database } from '../../postgres/database.ts';
import { olderTransactionsEnded } from '../../postgres/tenants/delete-tenant.ts';
import { refuseHeld } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { readTreeSize } from '../../proof/log/leaf-store.ts';
import { hashOfErasedActor } from '../../recording/entry-columns.ts';
import { noteErasedDocument, takeErasureKey } from '../../recording/erased-changes.ts';
import { type CompiledRules, compileRules } from '../../recording/mapping/apply-rules.ts';
import type { Place } from '../entries/entry-store.ts';
import { foldHistory } from '../upkeep/fold.ts';
import { countEntries, type Erasing, erasePortion, type FoundEntry, readPortion } from './erase-portion.ts';
import {
  type ErasingTexts,
  eraseTexts,
  eraseWhole,
  findKeptIds,
  findMentions,
  type TouchedRow,
} from './erase-texts.ts';
import { announceErasure, endErasure, insertErasure, listUntold, type UntoldSubscription } from './erasure-store.ts';
import {
  countCorrelated,
  countSameName,
  findActors,
  findIdsBeside,
  findRecorders,
  findUnfinished,
  newSubject,
} from './find-subject.ts';
import { findContexts, findOwnEntries, type Leftover } from './own-entries.ts';
import { redactLateSealed } from './redact-late-sealed.ts';
import { withNumbers } from './replace-in-text.ts';
import { rewriteEntry } from './rewrite-entry.ts';
import { type ErasureReason, type SealedSubject, type Subject, sealSubject } from './subject.ts';

export interface EraseOptions {
  readonly db: Database;
  readonly sealer: Sealer;
  readonly tenant: string;
  readonly subject: Subject;
  readonly reason: ErasureReason;
  readonly now: () => number;
  /** An erasure to repeat, because the database was restored to a state before it. */
  readonly again?: StoredSubject | undefined;
  /** Whether ids and paths that name the subject are left; otherwise they stop the erasure. */
  readonly leaveIds?: boolean | undefined;
  /** Called after each portion with its milliseconds; a pause as long leaves half of the disk to others. */
  readonly rest: (taken: number) => Promise<void>;
  readonly onProgress?: ((entries: number) => void) | undefined;
}

interface StoredSubject {
  readonly erasure: string;
  readonly sealed: SealedSubject;
}

/** What an erasure has changed, or would change. */
export interface ErasedCounts {
  /** Undefined: nothing was found. */
  readonly erasure: string | undefined;
  readonly entries: number;
  /** Changed or deleted rows of other tables, by table. */
  readonly rows: Readonly<Record<string, number>>;
  /** Subscriptions to notify by other means, after an erasure. */
  readonly untold?: readonly UntoldSubscription[];
  /** Ids and paths that name the subject and stay, and texts with a word that may not be the person. */
  readonly left?: readonly Leftover[];
  /** Of a person by an id: how many entries are by the same names without the id, or with another one. They stay. */
  readonly sameName?: number | undefined;
  /** Of a person by a name: the ids beside the name, which stay. */
  readonly ids?: readonly string[] | undefined;
  /** How many entries have an id or a name of the subject in their correlation id, which stays. */
  readonly correlated?: number | undefined;
}

/** A document whose entries have the subject. */
interface TouchedDocument {
  readonly entity: string;
  readonly entityId: string;
  readonly entries: number;
  /** As in entries: `actor`, `paths.email`. */
  readonly erased: readonly string[];
}

/** Passes over the entries: each covers what was recorded during the one before. */
const maxPasses = 5;
const retries = 20;
/** Milliseconds: the limit of the wait for a fold, and the interval of the checks. */
const maxFoldWait = 10 * 60_000;
const checkEvery = 50;

/** Reports what an erasure would change, each document and each row of other tables, and what would stop it. */
export async function findSubject(
  options: EraseOptions,
  onFound: (found: TouchedDocument | TouchedRow) => void,
): Promise<ErasedCounts> {
  const { db, subject } = options;
  const sealed = (await findUnfinished(options))?.sealed ?? (await newSubject(options));
  const { searched, entries: byName } = await searchHistory(options, sealed);
  const documents = new Map<string, TouchedDocument>();
  let entries = byName;
  const note = async (only?: readonly Place[]) => {
    for (let after: Place | undefined; ; ) {
      const from = after;
      const found = await inTransaction(db, (transaction) => readPortion(transaction, { ...searched, only }, from));
      after = found.at(-1);
      if (after === undefined) return;
      // Of these alone, the others are found by name.
      const counted = only === undefined ? found : found.filter(isOfOthers);
      if (only !== undefined) entries += counted.length;
      noteAll(counted);
    }
  };
  const noteAll = (found: readonly FoundEntry[]) => {
    for (const entry of found) {
      const { entity, entityId } = entry;
      const key = JSON.stringify([entity, entityId]);
      const before = JSON.parse(entry.erased ?? '[]') as string[];
      const erased = JSON.parse(rewriteEntry(entry, sealed, rulesOf(subject)).erased) as string[];
      const known = documents.get(key) ?? { entity, entityId, entries: 0, erased: [] };
      const members = new Set([...known.erased, ...erased.filter((member) => !before.includes(member))]);
      documents.set(key, { ...known, entries: known.entries + 1, erased: [...members].sort() });
    }
  };
  await note();
  for await (const places of contextsOf(options, sealed)) await note(places);
  documents.forEach(onFound);
  const texts = textsOf(options, sealed);
  const rows = sumOf(await eraseTexts(texts, onFound), await eraseWhole(texts, true));
  const left = await withMentions(texts, await findLeftovers(texts, searched.leftovers), searched.mentions);
  return { erasure: undefined, entries, rows, left, ...(await stayingOf(options, sealed)) };
}

/** Entries that have the subject in their context alone. */
function isOfOthers({ isOfActor, isOnBehalf, isOfRecorder, isOfService }: FoundEntry): boolean {
  return !isOfActor && !isOnBehalf && !isOfRecorder && !isOfService;
}

/** The entries whose contexts have the id of a person, in portions. */
async function* contextsOf({ db, tenant }: EraseOptions, sealed: SealedSubject): AsyncGenerator<readonly Place[]> {
  for (let after: Place | undefined; ; ) {
    const { places, reached } = await findContexts(db, tenant, sealed, after);
    if (places.length > 0) yield places;
    if (reached === undefined) return;
    after = reached;
  }
}

/** What stays of the subject: what nothing says to be of the same person, and correlation ids. */
async function stayingOf({ db, tenant }: EraseOptions, sealed: SealedSubject) {
  const sameName = await countSameName(db, tenant, sealed);
  const ids = await findIdsBeside(db, tenant, sealed);
  const correlated = await countCorrelated(db, tenant, sealed);
  return {
    ...(sameName !== undefined && { sameName }),
    ...(ids.length > 0 && { ids }),
    ...(correlated > 0 && { correlated }),
  };
}

async function searchHistory({ db, tenant }: EraseOptions, sealed: SealedSubject) {
  await foldHistory(db, tenant);
  const [recorders, actors] = [await findRecorders(db, tenant, sealed), await findActors(db, tenant, sealed)];
  const { places, ...found } = await findOwnEntries(db, tenant, sealed);
  const searched = { ...sealed, tenant, recorders, actors, own: places, ...found };
  return { searched, entries: await countEntries(db, searched) };
}

async function findLeftovers(texts: ErasingTexts, inHistory: readonly Leftover[]): Promise<readonly Leftover[]> {
  const found = [...inHistory, ...(await findKeptIds(texts))];
  return [...new Map(found.map((leftover) => [JSON.stringify(leftover), leftover])).values()];
}

/** What stays: what would stop an erasure, and words that may not be the person, which do not. */
async function withMentions(texts: ErasingTexts, left: readonly Leftover[], inHistory: readonly Leftover[]) {
  const all = [...left, ...inHistory, ...(await findMentions(texts))];
  return [...new Map(all.map((leftover) => [JSON.stringify(leftover), leftover])).values()];
}

/** Leftovers that a message lists. */
const maxNamed = 20;

function refuseLeftovers(left: readonly Leftover[], { leaveIds = false }: EraseOptions, isBegun: boolean): void {
  if (leaveIds || left.length === 0) return;
  const named = left.slice(0, maxNamed).map(({ entity, entityId, where }) => `${entity} ${entityId}: ${where}`);
  const more = left.length > maxNamed ? `, and ${left.length - maxNamed} more` : '';
  throw new OperatorError(
    `the person is in ids or names of paths, which cannot be erased (${named.join('; ')}${more}). ${
      isBegun ? 'The erasure is incomplete' : 'Nothing was erased'
    }. Delete such an object and erase it by --entity and --entity-id, or leave them with --leave-ids, and run this again`,
  );
}

/**
 * Erases a person or a document from a tenant. Idempotent: a call for the same subject resumes an interrupted one.
 * Throws an OperatorError if the tenant is or goes on hold, if the document is a live one of this service, or if the
 * subject is still being recorded: then the erasure is incomplete.
 */
export async function eraseSubject(options: EraseOptions): Promise<ErasedCounts> {
  const { db, sealer, tenant, subject, reason, now } = options;
  await inTransaction(db, async (transaction) => {
    await refuseHeld(transaction, tenant);
    await refuseLiveDocument(transaction, tenant, subject);
  });
  const unfinished = await findUnfinished(options);
  const known = unfinished ?? options.again;
  const { erasure, sealed } = known ?? { erasure: randomUUID(), sealed: await newSubject(options) };
  const texts = textsOf(options, sealed);
  if (known === undefined) {
    const { searched, entries } = await searchHistory(options, sealed);
    const left = await findLeftovers(texts, searched.leftovers);
    refuseLeftovers(left, options, false);
    const rows = await eraseTexts(texts, () => {});
    const isFound =
      entries > 0 ||
      Object.keys(rows).length > 0 ||
      searched.actors.left.length > 0 ||
      (await contextsOf(options, sealed).next()).done !== true;
    if (!isFound) {
      const stays = await withMentions(texts, left, searched.mentions);
      return { erasure: undefined, entries, rows, left: stays, ...(await stayingOf(options, sealed)) };
    }
  }
  const key = await takeErasureKey(db, sealer);
  const sealedBefore = unfinished === undefined ? await readTreeSize(db, tenant) : 0;
  if (unfinished === undefined) {
    await inTransaction(db, async (transaction) => {
      await refuseHeld(transaction, tenant);
      await insertErasure(transaction, tenant, {
        erasure,
        reason,
        subject: sealSubject(sealer, tenant, erasure, sealed),
        now: now(),
      });
      if ('entity' in subject) await noteErasedDocument(transaction, key, tenant, subject);
    });
  }
  const erasing = { ...sealed, tenant, erasure, reason, key, rules: rulesOf(subject), now };
  let isRecorded = true;
  let rows: Record<string, number> = {};
  let left: readonly Leftover[] = [];
  let mentioned: readonly Leftover[] = [];
  for (let pass = 0; pass < maxPasses && isRecorded; pass += 1) {
    // Before the entries, because the entry of a later write quotes the object's previous text.
    rows = sumOf(rows, await eraseTexts(texts));
    // Transactions that began before the erasure do not know of it, and would record the subject again.
    await olderTransactionsEnded(db);
    await foldAll(db, tenant);
    const [recorders, actors] = [await findRecorders(db, tenant, sealed), await findActors(db, tenant, sealed)];
    const { places: own, leftovers, mentions } = await findOwnEntries(db, tenant, sealed);
    const found = { ...erasing, recorders, actors };
    let erased = await erasePass(options, { ...found, own });
    for await (const only of contextsOf(options, sealed))
      erased += await erasePass(options, { ...found, own: [], only });
    // After the entries, whose proof includes the names in dictionaries.
    const renamed = await renameAll(db, { ...found, own: [] }, sealedBefore);
    left = await findLeftovers(texts, leftovers);
    mentioned = mentions;
    isRecorded = erased > 0 || renamed;
  }
  rows = sumOf(rows, await eraseWhole(texts));
  // Its changes may be delivered before the next run erases them, without notice of the erasure.
  if (isRecorded) {
    throw new OperatorError(
      'the person or the document is still being recorded, so the erasure is incomplete. Stop what records it, and run the same command again',
    );
  }
  refuseLeftovers(left, options, true);
  const entries = await inTransaction(db, async (transaction) => {
    await announceErasure(transaction);
    return await endErasure(transaction, tenant, { erasure, now: now() });
  });
  const untold = await listUntold(db, tenant);
  const stays = await withMentions(texts, left, mentioned);
  return { erasure, entries, rows, untold, left: stays, ...(await stayingOf(options, sealed)) };
}

function sumOf(a: Record<string, number>, b: Record<string, number>): Record<string, number> {
  const sum = { ...a };
  for (const [table, rows] of Object.entries(b)) sum[table] = (sum[table] ?? 0) + rows;
  return sum;
}

/** Folds all entries, or waits for the process that does: a pass skips entries that are not folded. */
async function foldAll(db: Database, tenant: string): Promise<void> {
  const { rows } = await sql<{ last: number | null }>`
    select max(delta) as last from change_delta where tenant = ${tenant}`.execute(db);
  const last = rows[0]?.last ?? null;
  for (const end = performance.now() + maxFoldWait; performance.now() < end; await sleep(checkEvery)) {
    await foldHistory(db, tenant);
    const left = await sql`
      select from change_delta where tenant = ${tenant} and delta <= ${last}::bigint limit 1`.execute(db);
    if (left.rows.length === 0) return;
  }
  throw new OperatorError(`changes of ${tenant} are recorded and not folded yet; run this again later`);
}

async function erasePass(options: EraseOptions, erasing: Erasing): Promise<number> {
  let erased = 0;
  let after: Place | undefined;
  for (;;) {
    const begun = performance.now();
    const from = after;
    const portion = await inTransaction(
      options.db,
      async (transaction) => {
        const done = await erasePortion(transaction, erasing, from);
        if (done.entries > 0) await announceErasure(transaction);
        return done;
      },
      { retries },
    );
    if (portion.entries === 0) return erased;
    erased += portion.entries;
    after = portion.reached;
    options.onProgress?.(portion.entries);
    await options.rest(performance.now() - begun);
  }
}

function textsOf({ db, sealer, tenant }: EraseOptions, sealed: SealedSubject): ErasingTexts {
  const { subject, needles, numbers, anywhere, replacement } = sealed;
  return {
    db,
    sealer,
    tenant,
    needles,
    numbers,
    anywhere,
    replacement,
    rows: withNumbers(sealed),
    document: 'entity' in subject ? subject : undefined,
  };
}

function rulesOf({ paths }: Subject): ReadonlyMap<string, CompiledRules> {
  const rules = new Map<string, CompiledRules>();
  for (const [entity, named] of Map.groupBy(paths, (path) => path.entity)) {
    const mask = named.map(({ path }) => parsePathPattern(path)).filter((pattern) => typeof pattern !== 'string');
    rules.set(entity, compileRules({ mask, ignore: [] }));
  }
  return rules;
}

/**
 * Erases the names in dictionaries, after the entries that came since the pass. The actor counts as registered now, so
 * processes reread the name before the next query; one that read it just after its registration forgets it within five
 * seconds. Returns whether there were rows with the name or the id.
 */
async function renameAll(db: Database, erasing: Erasing, sealedBefore: number): Promise<boolean> {
  const { tenant, subject, replacement, recorders, actors } = erasing;
  if ('entity' in subject) return false;
  return await inTransaction(
    db,
    async (transaction) => {
      await refuseHeld(transaction, tenant);
      // erasePortion takes the lock of the proof, so nothing is sealed with the name until the end.
      while ((await erasePortion(transaction, erasing, undefined)).entries > 0);
      await redactLateSealed(transaction, erasing, sealedBefore);
      const { names, ids, behalfNames, behalfIds, left } = actors;
      const numbers = [names, ids, behalfNames, behalfIds, left].map((of) => sql`${int8Array(of)}::bigint[]`);
      await sql`
        select change_rename(${tenant}, ${replacement}, ${sql.join(numbers)},
          ${uuidArray(left.map(hashOfErasedActor))}::uuid[], ${int8Array(recorders)}::bigint[])`.execute(transaction);
      await announceErasure(transaction);
      return left.length > 0;
    },
    { retries },
  );
}

/** The table of Annals' own documents of a type, and the column of their ids. */
const tablesOfOwn: ReadonlyMap<string, readonly [table: string, id: string]> = new Map([
  ['agent', ['agent', 'id']],
  ['annals-budget', ['budget', 'id']],
  ['annals-view', ['saved_view', 'id']],
  ['changelog-subscription', ['subscription', 'id']],
  ['configuration', ['configuration', 'key']],
  ['custom-entity', ['custom_entity', 'id']],
]);

async function refuseLiveDocument(
  transaction: Parameters<typeof refuseHeld>[0],
  tenant: string,
  subject: Subject,
): Promise<void> {
  if (!('entity' in subject)) return;
  const { entity, entityId } = subject;
  const [table, id] = tablesOfOwn.get(entity) ?? [];
  const own =
    table === undefined
      ? sql``
      : sql`union all select from ${sql.table(table)} where tenant = ${tenant} and ${sql.ref(id ?? '')} = ${entityId}`;
  const { rows } = await sql`
    select from custom_instance where tenant = ${tenant} and type = ${entity} and id = ${entityId} ${own}`.execute(
    transaction,
  );
  if (rows.length > 0) {
    throw new OperatorError(
      `the document ${entity} ${entityId} still exists; delete it first, or its next change names it again`,
    );
  }
}
