// Long because one subject: forming a batch, attempting it and settling it share the state of a run.

import { createHash, randomUUID } from 'node:crypto';
import { millisecondsOf } from '../../core/duration.ts';
import { AnnalsError } from '../../core/errors.ts';
import type { ReadingPosition } from '../changes.ts';
import type { DeliveryRun } from '../dispatch/delivery-run.ts';
import { findReplay, type StoredReplay } from '../dispatch/run-store.ts';
import type { AttemptRecord } from '../subscriptions/attempt-store.ts';
import { limitsOf } from '../targets/schemas.ts';
import { failuresOf, pauseOf } from '../webhooks/retry-schedule.ts';
import {
  deleteBatch,
  findBatch,
  insertBatch,
  insertObject,
  type ReaderKind,
  type StoredBatch,
  updateBatch,
} from './batch-store.ts';
import type { BatchResult, BatchTarget } from './batch-target.ts';
import { batchStart, deliverManifests } from './deliver-manifests.ts';
import { type FormedBatch, formBatch } from './form-batch.ts';
import { dayOf } from './manifest.ts';

// Milliseconds.
/** The maximum pause before a partial batch is checked again. */
const maxFillPause = 1_000;
/** Batches that are not acknowledged after this long are sent again, as Splunk recommends. */
export const maxUnacknowledged = 5 * 60_000;
const acknowledgementPause = { min: 1_000, max: 10_000 };
/** The time slice of a run, after which stops, changes and other runs take effect. */
const maxRun = 5_000;

/**
 * Delivers batches in strict order, one at a time per reader. The bounds are stored before the first attempt, so every
 * retry sends the same batch. A failing batch blocks the subscription.
 */
export async function runBatches(run: DeliveryRun, target: BatchTarget): Promise<number | undefined> {
  const startedAt = performance.now();
  const pauses: number[] = [];
  const open = new Set<ReaderKind>(['live', 'replay']);
  while (open.size > 0) {
    if (performance.now() - startedAt > maxRun) return 0;
    run.signal.throwIfAborted();
    const manifests = target.objects && (await deliverManifests(run, target.objects));
    if (manifests?.is === 'blocked') return manifests.pause;
    if (manifests !== undefined) pauses.push(manifests.pause);
    for (const kind of open) {
      const next = await step(run, target, kind, manifests?.day);
      if (next.is === 'blocked') return next.pause;
      if (next.is === 'more') continue;
      open.delete(kind);
      if (next.pause !== undefined) pauses.push(next.pause);
    }
  }
  return pauses.length === 0 ? undefined : Math.min(...pauses);
}

/** `more`: continue now. `idle`: nothing to do before `pause`. `blocked`: no reader may continue before `pause`. */
type Next =
  | { readonly is: 'more' }
  | { readonly is: 'idle'; readonly pause?: number }
  | { readonly is: 'blocked'; readonly pause: number };

const more: Next = { is: 'more' };
const idle: Next = { is: 'idle' };

async function step(
  run: DeliveryRun,
  target: BatchTarget,
  kind: ReaderKind,
  firstDay: string | undefined,
): Promise<Next> {
  const { db } = run.options;
  const stored = await findBatch(db, run.tenant, run.id, kind);
  if (stored !== undefined) return await deliver(run, target, kind, stored, undefined);
  const replay = kind === 'replay' ? await findReplay(db, run.tenant, run.id) : undefined;
  if (kind === 'replay' && replay === undefined) return idle;
  const checkpoint = replay ?? run.state;
  const formed = await formBatch(
    (_tenant, request) => run.read(request.after, request),
    run.tenant,
    {
      ...queryOf(run, target, kind),
      after: checkpoint,
      until: replay?.until,
    },
    limitsOf(run.sending.target),
  );
  if (formed.changes.length === 0) return await skipEmpty(run, formed, checkpoint, replay);
  const pause = kind === 'live' && !formed.isFull ? fillPause(run, formed) : 0;
  if (pause > 0) {
    // Otherwise each new change would wake it.
    const rest = Math.min(pause, maxFillPause);
    await run.settle({ counts: {}, rest });
    return { is: 'idle', pause: rest };
  }
  return await deliver(
    run,
    target,
    kind,
    await store(run, target, { kind, formed, checkpoint, replay, firstDay }),
    formed,
  );
}

function queryOf(run: DeliveryRun, target: BatchTarget, kind: ReaderKind) {
  const { q, maxAge } = run.document;
  return {
    q,
    // Replays send old changes on purpose.
    maxAge: maxAge === undefined || kind === 'replay' ? undefined : millisecondsOf(maxAge),
    textsOf: (changes: FormedBatch['changes']) => target.textsOf(run.sending, changes),
  };
}

async function skipEmpty(
  run: DeliveryRun,
  { reached, skipped, expired, caughtUp }: FormedBatch,
  checkpoint: ReadingPosition,
  replay: StoredReplay | undefined,
): Promise<Next> {
  const isOver = replay !== undefined && (reached.position >= replay.until || caughtUp);
  if (reached.position === checkpoint.position && !isOver) return idle;
  await run.settle({ counts: { matched: skipped, skipped, expired }, ...progress(run, reached, replay, isOver) });
  return caughtUp ? idle : more;
}

function progress(run: DeliveryRun, reached: ReadingPosition, replay: StoredReplay | undefined, isOver: boolean) {
  if (replay !== undefined) return { replay: { checkpoint: reached, isOver } };
  return { checkpoint: { ...reached, cursor: run.options.history.cursorOf(run.tenant, reached) } };
}

/** Milliseconds until a partial batch is sent: `maxSeconds` after its first change was recorded. */
function fillPause(run: DeliveryRun, { changes: [first] }: FormedBatch): number {
  const waited = run.now() - (first?.recordedAt ?? 0);
  // Negative if this clock is behind that of the database.
  return waited < 0 ? 0 : limitsOf(run.sending.target).maxSeconds * 1_000 - waited;
}

interface BatchToStore {
  readonly kind: ReaderKind;
  readonly formed: FormedBatch;
  readonly checkpoint: ReadingPosition;
  readonly replay: StoredReplay | undefined;
  readonly firstDay: string | undefined;
}

async function store(run: DeliveryRun, target: BatchTarget, toStore: BatchToStore): Promise<StoredBatch> {
  const { kind, formed, checkpoint, replay, firstDay } = toStore;
  const { changes, reached, skipped, expired, caughtUp } = formed;
  const begunAt = batchStart(run.now(), firstDay);
  const bounds = {
    ...{ position: checkpoint.position, fingerprint: checkpoint.fingerprint, until: reached.position },
    first: changes[0]?.position ?? 0,
    last: changes.at(-1)?.position ?? 0,
    changes: changes.length,
    key: randomUUID(),
    hashes: [hashOf(target.join(run.sending, formed.texts))],
  };
  const isOver = replay !== undefined && (reached.position >= replay.until || caughtUp);
  await run.settle({
    counts: { matched: changes.length + skipped, waiting: changes.length, skipped, expired },
    ...progress(run, reached, replay, isOver),
    also: (transaction) => insertBatch(transaction, run.tenant, run.id, { kind, begunAt, ...bounds }),
  });
  return { ...bounds, begunAt, attempts: 0, dueAt: begunAt, receipt: null, takenAt: null };
}

async function deliver(
  run: DeliveryRun,
  target: BatchTarget,
  kind: ReaderKind,
  stored: StoredBatch,
  formed: FormedBatch | undefined,
): Promise<Next> {
  const wait = stored.receipt === null ? 0 : stored.dueAt - run.now();
  if (wait > 0) return { is: 'idle', pause: wait };
  const awaitsAck = stored.receipt !== null;
  const texts = awaitsAck ? [] : (formed ?? (await readAgain(run, target, kind, stored))).texts;
  const text = texts.length === 0 ? '' : target.join(run.sending, texts);
  const sha256 = hashOf(text);
  const batch = awaitsAck ? stored : await withText(run, kind, stored, texts.length, text === '' ? undefined : sha256);
  const at = run.now();
  const result = await run.attempt(() =>
    target.deliverBatch(run.sending, {
      ...{ first: batch.first, last: batch.last, changes: batch.changes, key: batch.key, hashes: batch.hashes },
      ...{ day: dayOf(batch.begunAt), text, sha256, receipt: batch.receipt ?? undefined },
    }),
  );
  // An attempt aborted by the end of the run is not a failure of the target.
  if (result.outcome !== 'delivered') run.signal.throwIfAborted();
  return await settle(run, target, { kind, batch, result, at, sha256 });
}

/** Rereads the changes of a stored batch. Retention, erasure or another query may have changed them. */
async function readAgain(
  run: DeliveryRun,
  target: BatchTarget,
  kind: ReaderKind,
  batch: StoredBatch,
): Promise<FormedBatch> {
  try {
    return await formBatch(
      (_tenant, request) => run.read(request.after, request),
      run.tenant,
      { ...queryOf(run, target, kind), after: batch, until: batch.until, isRepeat: true },
      { maxChanges: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER },
    );
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.type !== 'cursor_invalid') throw error;
    // The database was restored, so the positions are no longer valid.
    await run.settle({
      counts: { waiting: -batch.changes, dropped: batch.changes },
      also: (transaction) => deleteBatch(transaction, run.tenant, run.id, kind),
    });
    throw error;
  }
}

/** Stores the hash of a text and the remaining changes before the attempt. */
async function withText(
  run: DeliveryRun,
  kind: ReaderKind,
  batch: StoredBatch,
  changes: number,
  sha256: string | undefined,
): Promise<StoredBatch> {
  const isKnown = sha256 === undefined || batch.hashes.includes(sha256);
  if (isKnown && changes === batch.changes) return batch;
  const hashes = isKnown ? batch.hashes : [...batch.hashes, sha256];
  const added = changes - batch.changes;
  await run.settle({
    counts: { matched: Math.max(0, added), dropped: Math.max(0, -added), waiting: added },
    also: (transaction) => updateBatch(transaction, run.tenant, run.id, kind, { hashes, changes }),
  });
  return { ...batch, hashes, changes };
}

interface BatchAttempt {
  readonly kind: ReaderKind;
  readonly batch: StoredBatch;
  readonly result: BatchResult;
  readonly at: number;
  readonly sha256: string;
}

async function settle(run: DeliveryRun, target: BatchTarget, attempt: BatchAttempt): Promise<Next> {
  const { kind, batch, result } = attempt;
  const { tenant, id } = run;
  if (result.outcome === 'delivered') {
    await run.settle({
      counts: { waiting: -batch.changes, delivered: batch.changes },
      health: { is: 'well' },
      ...(batch.changes > 0 && { attempts: attemptsOf(attempt) }),
      also: async (transaction) => {
        await deleteBatch(transaction, tenant, id, kind);
        if (target.objects === undefined || result.isAbsent === true) return;
        const { first, last } = batch;
        const object = result.found ?? { sha256: attempt.sha256, changes: batch.changes };
        await insertObject(transaction, tenant, id, { day: dayOf(batch.begunAt), first, last, ...object });
      },
    });
    return more;
  }
  if (result.outcome === 'taken') return await awaitAck(run, attempt);
  return await settleFailure(run, attempt);
}

/** The target has accepted the batch but not acknowledged it. Nothing is sent until it does or time runs out. */
async function awaitAck(run: DeliveryRun, attempt: BatchAttempt): Promise<Next> {
  const { kind, batch, result, at } = attempt;
  const takenAt = batch.takenAt ?? at;
  if (run.now() - takenAt > maxUnacknowledged) {
    const error = 'The target has not acknowledged the batch within 5 minutes.';
    return await settleFailure(run, { ...attempt, result: { ...result, outcome: 'failed', error } });
  }
  const { min, max } = acknowledgementPause;
  const pause = Math.min(max, Math.max(min, run.now() - takenAt));
  const update = { receipt: result.receipt ?? null, takenAt, dueAt: run.now() + pause };
  await run.settle({
    counts: {},
    rest: pause,
    also: (transaction) => updateBatch(transaction, run.tenant, run.id, kind, update),
  });
  return { is: 'idle', pause };
}

async function settleFailure(run: DeliveryRun, attempt: BatchAttempt): Promise<Next> {
  const { kind, batch, result } = attempt;
  const attempts = failuresOf(run, batch) + 1;
  const pause = pauseOf(attempts, result.retryAfter);
  // An accepted batch may still be acknowledged.
  const isLost = batch.takenAt !== null && run.now() - batch.takenAt > maxUnacknowledged;
  await run.settle({
    counts: {},
    health: result.outcome === 'suspended' ? { is: 'gone' } : { is: 'failing', rest: pause },
    attempts: attemptsOf(attempt),
    also: (transaction) =>
      updateBatch(transaction, run.tenant, run.id, kind, {
        attempts,
        ...(isLost && { receipt: null, takenAt: null }),
      }),
  });
  return { is: 'blocked', pause };
}

function attemptsOf({ kind, batch: { first, last }, result, at }: BatchAttempt): AttemptRecord[] {
  const { outcome, ...rest } = result;
  return outcome === 'taken' ? [] : [{ kind, at, first, last, result: { ...rest, outcome } }];
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
