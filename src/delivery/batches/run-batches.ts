import { createHash, randomUUID } from 'node:crypto';
import { millisecondsOf } from '../../core/duration.ts';
import { AnnalsError } from '../../core/errors.ts';
import type { ReadingPosition } from '../changes.ts';
import type { Held } from '../dispatch/held.ts';
import { findReplay, type StoredReplay } from '../dispatch/held-store.ts';
import type { MadeAttempt } from '../subscriptions/attempt-store.ts';
import { failuresOf, pauseOf } from './batch-schedule.ts';
import { deleteBatch, findBatch, insertBatch, insertObject, type StoredBatch, updateBatch } from './batch-store.ts';
import type { BatchResult, BatchTarget } from './batch-target.ts';
import { beginOfBatch, deliverManifests } from './deliver-manifests.ts';
import { type FormedBatch, formBatch } from './form-batch.ts';
import { dayOf } from './manifest.ts';
import type { ReaderKind } from './tables.ts';
import { limitsOf } from './target-schemas.ts';

// Milliseconds.
/** A subscription whose batch is not full yet is looked at again so often. */
const maxFillPause = 1_000;
/** Splunk's advice: what is not acknowledged after this long is sent again. */
export const maxUnacknowledged = 5 * 60_000;
const acknowledgementPause = { min: 1_000, max: 10_000 };
/** A run ends after this long, so that stopping, changed subscriptions and other runs are heeded. */
const maxRun = 5_000;

/**
 * Delivers batches in strict order, one under way of each reader. A batch's bounds are stored before its first attempt, so an
 * attempt after a crash, a failure or a lost answer is the same batch. A failure blocks the subscription until it is over.
 */
export async function runBatches(held: Held, target: BatchTarget): Promise<number | undefined> {
  const begun = performance.now();
  const pauses: number[] = [];
  const open = new Set<ReaderKind>(['live', 'replay']);
  while (open.size > 0) {
    if (performance.now() - begun > maxRun) return 0;
    held.signal.throwIfAborted();
    const manifests = target.objects && (await deliverManifests(held, target.objects));
    if (manifests?.is === 'blocked') return manifests.pause;
    if (manifests !== undefined) pauses.push(manifests.pause);
    for (const kind of open) {
      const next = await step(held, target, kind, manifests?.day);
      if (next.is === 'blocked') return next.pause;
      if (next.is === 'more') continue;
      open.delete(kind);
      if (next.pause !== undefined) pauses.push(next.pause);
    }
  }
  return pauses.length === 0 ? undefined : Math.min(...pauses);
}

/** What a reader does next: more at once, or after so many milliseconds, if anything; or nobody reads before these are over. */
type Next =
  | { readonly is: 'more' }
  | { readonly is: 'idle'; readonly pause?: number }
  | { readonly is: 'blocked'; readonly pause: number };

const more: Next = { is: 'more' };
const idle: Next = { is: 'idle' };

async function step(held: Held, target: BatchTarget, kind: ReaderKind, firstDay: string | undefined): Promise<Next> {
  const { db } = held.options;
  const stored = await findBatch(db, held.tenant, held.id, kind);
  if (stored !== undefined) return await deliver(held, target, kind, stored, undefined);
  const replay = kind === 'replay' ? await findReplay(db, held.tenant, held.id) : undefined;
  if (kind === 'replay' && replay === undefined) return idle;
  const place = replay ?? held.state;
  const formed = await formBatch(
    (_tenant, wanted) => held.read(wanted.after, wanted),
    held.tenant,
    {
      ...asked(held, target, kind),
      after: place,
      until: replay?.until,
    },
    limitsOf(held.sending.target),
  );
  if (formed.changes.length === 0) return await noteNothing(held, formed, place, replay);
  const pause = kind === 'live' && !formed.isFull ? fillPause(held, formed) : 0;
  if (pause > 0) {
    // Each new change would have it looked at otherwise.
    const rest = Math.min(pause, maxFillPause);
    await held.settle({ counts: {}, rest });
    return { is: 'idle', pause: rest };
  }
  return await deliver(
    held,
    target,
    kind,
    await store(held, target, { kind, formed, place, replay, firstDay }),
    formed,
  );
}

function asked(held: Held, target: BatchTarget, kind: ReaderKind) {
  const { q, maxAge } = held.document;
  return {
    q,
    // Who replays wants what is old.
    maxAge: maxAge === undefined || kind === 'replay' ? undefined : millisecondsOf(maxAge),
    textsOf: (changes: FormedBatch['changes']) => target.textsOf(held.sending, changes),
  };
}

async function noteNothing(
  held: Held,
  { reached, skipped, expired, caughtUp }: FormedBatch,
  place: ReadingPosition,
  replay: StoredReplay | undefined,
): Promise<Next> {
  const isOver = replay !== undefined && (reached.position >= replay.until || caughtUp);
  if (reached.position === place.position && !isOver) return idle;
  await held.settle({ counts: { matched: skipped, skipped, expired }, ...movedTo(held, reached, replay, isOver) });
  return caughtUp ? idle : more;
}

function movedTo(held: Held, reached: ReadingPosition, replay: StoredReplay | undefined, isOver: boolean) {
  if (replay !== undefined) return { replay: { place: reached, isOver } };
  return { place: { ...reached, cursor: held.options.history.cursorOf(held.tenant, reached) } };
}

/** Milliseconds until a batch that is not full ends: so many seconds after its first change was recorded. */
function fillPause(held: Held, { changes: [first] }: FormedBatch): number {
  const waited = held.now() - (first?.recordedAt ?? 0);
  // A clock that is behind that of the database does not tell how long.
  return waited < 0 ? 0 : limitsOf(held.sending.target).maxSeconds * 1_000 - waited;
}

interface BatchToStore {
  readonly kind: ReaderKind;
  readonly formed: FormedBatch;
  readonly place: ReadingPosition;
  readonly replay: StoredReplay | undefined;
  readonly firstDay: string | undefined;
}

async function store(held: Held, target: BatchTarget, toStore: BatchToStore): Promise<StoredBatch> {
  const { kind, formed, place, replay, firstDay } = toStore;
  const { changes, reached, skipped, expired, caughtUp } = formed;
  const begunAt = beginOfBatch(held.now(), firstDay);
  const bounds = {
    ...{ position: place.position, fingerprint: place.fingerprint, until: reached.position },
    first: changes[0]?.position ?? 0,
    last: changes.at(-1)?.position ?? 0,
    changes: changes.length,
    key: randomUUID(),
    hashes: [hashOf(target.join(held.sending, formed.texts))],
  };
  const isOver = replay !== undefined && (reached.position >= replay.until || caughtUp);
  await held.settle({
    counts: { matched: changes.length + skipped, waiting: changes.length, skipped, expired },
    ...movedTo(held, reached, replay, isOver),
    also: (transaction) => insertBatch(transaction, held.tenant, held.id, { kind, begunAt, ...bounds }),
  });
  return { ...bounds, begunAt, attempts: 0, dueAt: begunAt, receipt: null, takenAt: null };
}

async function deliver(
  held: Held,
  target: BatchTarget,
  kind: ReaderKind,
  stored: StoredBatch,
  formed: FormedBatch | undefined,
): Promise<Next> {
  const wait = stored.receipt === null ? 0 : stored.dueAt - held.now();
  if (wait > 0) return { is: 'idle', pause: wait };
  const isAsked = stored.receipt !== null;
  const texts = isAsked ? [] : (formed ?? (await readAgain(held, target, kind, stored))).texts;
  const text = texts.length === 0 ? '' : target.join(held.sending, texts);
  const sha256 = hashOf(text);
  const batch = isAsked ? stored : await withText(held, kind, stored, texts.length, text === '' ? undefined : sha256);
  const at = held.now();
  const result = await held.attempt(() =>
    target.deliverBatch(held.sending, {
      ...{ first: batch.first, last: batch.last, changes: batch.changes, key: batch.key, hashes: batch.hashes },
      ...{ day: dayOf(batch.begunAt), text, sha256, receipt: batch.receipt ?? undefined },
    }),
  );
  // What the end of the run has cut is not the target's failure.
  if (result.outcome !== 'delivered') held.signal.throwIfAborted();
  return await settle(held, target, { kind, batch, result, at, sha256 });
}

/** The changes of a batch whose bounds are stored. Retention, erasure or another query may have made them others. */
async function readAgain(held: Held, target: BatchTarget, kind: ReaderKind, batch: StoredBatch): Promise<FormedBatch> {
  try {
    return await formBatch(
      (_tenant, wanted) => held.read(wanted.after, wanted),
      held.tenant,
      { ...asked(held, target, kind), after: batch, until: batch.until, isRepeat: true },
      { maxChanges: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER },
    );
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.type !== 'cursor_invalid') throw error;
    // The database was restored, and these positions are others now.
    await held.settle({
      counts: { waiting: -batch.changes, dropped: batch.changes },
      also: (transaction) => deleteBatch(transaction, held.tenant, held.id, kind),
    });
    throw error;
  }
}

/** Stores the sum of a text before an attempt is made with it, and how many changes are left. */
async function withText(
  held: Held,
  kind: ReaderKind,
  batch: StoredBatch,
  changes: number,
  sha256: string | undefined,
): Promise<StoredBatch> {
  const isKnown = sha256 === undefined || batch.hashes.includes(sha256);
  if (isKnown && changes === batch.changes) return batch;
  const hashes = isKnown ? batch.hashes : [...batch.hashes, sha256];
  const added = changes - batch.changes;
  await held.settle({
    counts: { matched: Math.max(0, added), dropped: Math.max(0, -added), waiting: added },
    also: (transaction) => updateBatch(transaction, held.tenant, held.id, kind, { hashes, changes }),
  });
  return { ...batch, hashes, changes };
}

interface Attempted {
  readonly kind: ReaderKind;
  readonly batch: StoredBatch;
  readonly result: BatchResult;
  readonly at: number;
  readonly sha256: string;
}

async function settle(held: Held, target: BatchTarget, attempted: Attempted): Promise<Next> {
  const { kind, batch, result } = attempted;
  const { tenant, id } = held;
  if (result.outcome === 'delivered') {
    await held.settle({
      counts: { waiting: -batch.changes, delivered: batch.changes },
      health: { is: 'well' },
      ...(batch.changes > 0 && { attempts: attemptsOf(attempted) }),
      also: async (transaction) => {
        await deleteBatch(transaction, tenant, id, kind);
        if (target.objects === undefined || result.isAbsent === true) return;
        const { first, last } = batch;
        const what = result.found ?? { sha256: attempted.sha256, changes: batch.changes };
        await insertObject(transaction, tenant, id, { day: dayOf(batch.begunAt), first, last, ...what });
      },
    });
    return more;
  }
  if (result.outcome === 'taken') return await keepReceipt(held, attempted);
  return await settleFailure(held, attempted);
}

/** The target has the batch and has not said yet that it keeps it. Nothing is sent again meanwhile. */
async function keepReceipt(held: Held, attempted: Attempted): Promise<Next> {
  const { kind, batch, result, at } = attempted;
  const takenAt = batch.takenAt ?? at;
  if (held.now() - takenAt > maxUnacknowledged) {
    const error = 'The target has not acknowledged the batch within 5 minutes.';
    return await settleFailure(held, { ...attempted, result: { ...result, outcome: 'failed', error } });
  }
  const { min, max } = acknowledgementPause;
  const pause = Math.min(max, Math.max(min, held.now() - takenAt));
  const changed = { receipt: result.receipt ?? null, takenAt, dueAt: held.now() + pause };
  await held.settle({
    counts: {},
    rest: pause,
    also: (transaction) => updateBatch(transaction, held.tenant, held.id, kind, changed),
  });
  return { is: 'idle', pause };
}

async function settleFailure(held: Held, attempted: Attempted): Promise<Next> {
  const { kind, batch, result } = attempted;
  const attempts = failuresOf(held, batch) + 1;
  const pause = pauseOf(attempts, result.retryAfter);
  // What was taken may still be acknowledged.
  const isLost = batch.takenAt !== null && held.now() - batch.takenAt > maxUnacknowledged;
  await held.settle({
    counts: {},
    health: result.outcome === 'suspended' ? { is: 'gone' } : { is: 'failing', rest: pause },
    attempts: attemptsOf(attempted),
    also: (transaction) =>
      updateBatch(transaction, held.tenant, held.id, kind, {
        attempts,
        ...(isLost && { receipt: null, takenAt: null }),
      }),
  });
  return { is: 'blocked', pause };
}

function attemptsOf({ kind, batch: { first, last }, result, at }: Attempted): MadeAttempt[] {
  const { outcome, ...others } = result;
  return outcome === 'taken' ? [] : [{ kind, at, first, last, result: { ...others, outcome } }];
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
