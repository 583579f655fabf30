import { millisecondsOf } from '../../core/duration.ts';
import { AnnalsError } from '../../core/errors.ts';
import type { DeliveredChange, ReadingPosition } from '../changes.ts';
import type { DeliveryRun } from '../dispatch/delivery-run.ts';
import { type Counts, findReplay, maxWaiting } from '../dispatch/run-store.ts';
import { type Retry, readDue, readKnown, type WaitingChange } from '../dispatch/waiting-store.ts';
import type { AttemptRecord } from '../subscriptions/attempt-store.ts';
import { defaultConcurrency } from '../targets/schemas.ts';
import type { DeliveryResult } from '../targets/target.ts';
import { AdaptiveLimiter } from './adaptive-limiter.ts';
import { pauseAfter } from './retry-schedule.ts';

/** Changes read, delivered and settled together. */
const pageSize = 100;
const maxDue = 100;

/**
 * Delivers one change per call, with at most `concurrency` calls: waiting, new and replayed changes concurrently. A
 * document's changes are delivered in order, so a failed one blocks it. An unreachable or overloaded target gets a
 * pause.
 */
export async function runWebhook(run: DeliveryRun): Promise<undefined> {
  const { concurrency = defaultConcurrency } = run.document.target as { concurrency?: number };
  const { unreachable, slowed } = run.state;
  const limiter = new AdaptiveLimiter({ concurrency, isProbing: unreachable > 0 || slowed > 0, unreachable, slowed });
  const context = { run, limiter };
  const ends = await Promise.allSettled([deliverDue(context), deliverNew(context), deliverReplay(context)]);
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

interface Context {
  readonly run: DeliveryRun;
  readonly limiter: AdaptiveLimiter;
}

/** `unsettled`: no attempt was completed. */
type Attempted = { readonly at: number; readonly result: DeliveryResult } | 'unsettled';

/** `blocked`: an earlier change of the document waits. `known`: the change itself already waits. */
type ChangeOutcome = Attempted | 'blocked' | 'skipped' | 'known';

/** Delivers waiting changes that are due, the first of each document. */
async function deliverDue(context: Context): Promise<void> {
  const { run, limiter } = context;
  while (!limiter.isOver) {
    const due = await readDue(run.options.db, run, limiter.isProbing ? 1 : maxDue);
    if (due.length === 0) return;
    const changes = await readAgain(run, due);
    const outcomes = await Promise.all(
      due.map(async ({ position }) => {
        const change = changes.get(position) ?? 'expired';
        return change === 'expired' ? change : await attempt(context, change);
      }),
    );
    const counts = { delivered: 0, dropped: 0, waiting: 0, parked: 0 };
    const [attempts, retries, done]: [AttemptRecord[], Retry[], number[]] = [[], [], []];
    for (const [index, outcome] of outcomes.entries()) {
      const waiting = due[index];
      if (waiting === undefined || outcome === 'unsettled') continue;
      if (outcome === 'expired') {
        done.push(waiting.position);
        counts.dropped += 1;
        counts.waiting -= 1;
        continue;
      }
      attempts.push(attemptOf(outcome, 'live', waiting.position));
      if (outcome.result.outcome === 'delivered') {
        done.push(waiting.position);
        counts.delivered += 1;
        counts.waiting -= 1;
      } else if (outcome.result.outcome !== 'refused') {
        const later = retryOf(waiting, outcome.result);
        retries.push(later);
        if (later.pause === 'parked') {
          counts.waiting -= 1;
          counts.parked += 1;
        }
      }
    }
    await run.settle({ counts, retries, done, attempts, health: limiter.takeHealth() });
  }
}

/** Positions covered by one read of waiting changes. */
const maxSpan = 200;

/** Rereads the entries of waiting changes by position, since their content is not stored. */
async function readAgain(
  run: DeliveryRun,
  waiting: readonly WaitingChange[],
): Promise<Map<number, DeliveredChange | 'expired'>> {
  const found = new Map<number, DeliveredChange | 'expired'>();
  let left = [...waiting].sort((a, b) => a.position - b.position);
  for (let first = left[0]; first !== undefined; first = left[0]) {
    const from = first.position - 1;
    const together = left.filter(({ position }) => position <= from + maxSpan);
    const fingerprint = (await run.options.history.fingerprintAt(run.tenant, from)) ?? 0;
    const maxPositions = (together.at(-1)?.position ?? 0) - from;
    const range = { maxItems: maxSpan, maxPositions, q: '' };
    const { items, reached } = await run.read({ position: from, fingerprint }, range);
    const byPosition = new Map(items.map((item) => [item.position, item]));
    for (const waitingChange of together.filter(({ position }) => position <= reached.position)) {
      const change = byPosition.get(waitingChange.position);
      if (change !== undefined && change.fingerprint !== waitingChange.fingerprint) {
        throw new AnnalsError('cursor_invalid', 'The database was restored to an earlier state.');
      }
      found.set(waitingChange.position, change ?? 'expired');
    }
    if (!found.has(first.position)) throw new Error('the read did not reach its first position');
    left = left.filter(({ position }) => !found.has(position));
  }
  return found;
}

async function deliverNew(context: Context): Promise<void> {
  const { run, limiter } = context;
  for (;;) {
    const { state } = run;
    const room = Math.min(pageSize, maxWaiting - state.waiting);
    if (room <= 0 || limiter.isOver) return;
    const reading = await run.read(state, { maxItems: room });
    if (reading.items.length === 0 && reading.reached.position === state.position) return;
    const maxAge = run.document.maxAge === undefined ? undefined : millisecondsOf(run.document.maxAge);
    const tooOld = ({ at, recordedAt }: DeliveredChange) => maxAge !== undefined && recordedAt - at > maxAge;
    const result = await deliverPage(context, reading.items, { kind: 'live', tooOld, retryAll: reading.expired > 0 });
    const { counts, retries, done, attempts, end } = result;
    const checkpoint = end === 'all' ? { ...reading.reached, cursor: reading.cursor } : end;
    const expired = end === 'all' ? reading.expired : 0;
    await run.settle({
      counts: { ...counts, expired },
      retries,
      done,
      attempts,
      checkpoint,
      health: limiter.takeHealth(),
    });
    if (end !== 'all' || (reading.caughtUp && reading.items.length < room)) return;
  }
}

async function deliverReplay(context: Context): Promise<void> {
  const { run, limiter } = context;
  for (;;) {
    const room = Math.min(pageSize, maxWaiting - run.state.waiting);
    if (room <= 0 || limiter.isOver) return;
    const replay = await findReplay(run.options.db, run.tenant, run.id);
    if (replay === undefined) return;
    const maxPositions = Math.min(10_000, replay.until - replay.position);
    const reading = await run.read(replay, { maxItems: room, maxPositions });
    const result = await deliverPage(context, reading.items, { kind: 'replay', tooOld: () => false, retryAll: true });
    const { counts, retries, done, attempts } = result;
    const checkpoint = reading.reached;
    const isOver = checkpoint.position >= replay.until || checkpoint.position === replay.position;
    await run.settle({
      ...{ retries, done, attempts, health: limiter.takeHealth() },
      counts: { ...counts, expired: reading.expired },
      replay: { checkpoint, isOver },
    });
  }
}

interface PageResult {
  readonly counts: Counts;
  readonly retries: readonly Retry[];
  readonly done: readonly number[];
  readonly attempts: readonly AttemptRecord[];
  /** The last settled change, `all` if every change is settled, undefined if none is. */
  readonly end: 'all' | (ReadingPosition & { readonly cursor: string }) | undefined;
}

/**
 * Delivers a page of changes. If the run ends early, skipped changes before the last attempted one wait, and those
 * after it are read again later. With `retriesAll` all of them wait.
 */
async function deliverPage(
  context: Context,
  items: readonly DeliveredChange[],
  {
    kind,
    tooOld,
    retryAll,
  }: { kind: 'live' | 'replay'; tooOld: (change: DeliveredChange) => boolean; retryAll: boolean },
): Promise<PageResult> {
  const { run } = context;
  if (items.length === 0) return { counts: {}, retries: [], done: [], attempts: [], end: 'all' };
  const documents = [...new Set(items.map(({ document }) => document))];
  const positions = items.map(({ position }) => position);
  const { blocked, known } = await readKnown(run.options.db, run, documents, positions);
  const queues = new Map<string, Promise<unknown>>();
  const outcomes = await Promise.all(
    items.map(async (change): Promise<ChangeOutcome> => {
      const { document, position } = change;
      if (known.get(position) === 'waiting') return 'known';
      if (tooOld(change)) return 'skipped';
      const deliver = async (): Promise<ChangeOutcome> => {
        if (blocked.has(document)) return 'blocked';
        const outcome = await attempt(context, change);
        if (outcome === 'unsettled' || outcome.result.outcome !== 'delivered') blocked.add(document);
        return outcome;
      };
      const queue = (queues.get(document) ?? Promise.resolve()).then(deliver);
      queues.set(
        document,
        queue.catch(() => {}),
      );
      return await queue;
    }),
  );
  const isOpen = (outcome: ChangeOutcome | undefined) =>
    outcome === 'unsettled' || (typeof outcome === 'object' && outcome.result.outcome === 'refused');
  const lastAttempted = outcomes.findLastIndex((outcome) => typeof outcome === 'object' && !isOpen(outcome));
  const hasOpen = outcomes.some(isOpen);
  const settled = !hasOpen || retryAll ? items.length : lastAttempted + 1;
  const counts = { matched: 0, delivered: 0, skipped: 0, waiting: 0, parked: 0 };
  const [attempts, retries, done]: [AttemptRecord[], Retry[], number[]] = [[], [], []];
  for (const [index, change] of items.entries()) {
    const outcome = outcomes[index];
    const { position } = change;
    if (typeof outcome === 'object') attempts.push(attemptOf(outcome, kind, position));
    if (index >= settled || outcome === 'known' || outcome === undefined) continue;
    const wasParked = known.get(position) === 'parked';
    if (wasParked) counts.parked -= 1;
    else counts.matched += 1;
    if (outcome === 'skipped') counts.skipped += 1;
    else if (typeof outcome === 'object' && outcome.result.outcome === 'delivered') {
      counts.delivered += 1;
      if (wasParked) done.push(position);
    } else {
      const waiting = { ...change, attempts: 0, pause: 0 };
      retries.push(typeof outcome === 'object' && !isOpen(outcome) ? retryOf(waiting, outcome.result) : waiting);
      counts.waiting += 1;
    }
  }
  const last = items[settled - 1];
  return { counts, retries, done, attempts, end: settled === items.length ? 'all' : last };
}

/** One attempt, when the limiter and the shared semaphore admit it. */
async function attempt({ run, limiter }: Context, change: DeliveredChange): Promise<Attempted> {
  return await limiter.run(async (): Promise<Attempted> => {
    try {
      const outcome = await run.attempt(async () => ({ at: run.now(), result: await send(run, change) }));
      // An attempt aborted by the end of the run is not a failure of the target.
      if (run.signal.aborted && outcome.result.outcome !== 'delivered') return 'unsettled';
      limiter.observe(outcome.result);
      return outcome;
    } catch (error) {
      if (run.signal.aborted) return 'unsettled';
      throw error;
    }
  });
}

async function send({ target, sending }: DeliveryRun, change: DeliveredChange): Promise<DeliveryResult> {
  if (target.deliverOne === undefined) throw new Error(`the target ${target.type} does not accept single changes`);
  return await target.deliverOne(sending, change);
}

function attemptOf(
  { at, result }: Exclude<Attempted, string>,
  kind: 'live' | 'replay',
  position: number,
): AttemptRecord {
  return { kind, at, result, first: position, last: position };
}

/** After 410 the change is retried as soon as the subscription is resumed. */
function retryOf(waiting: WaitingChange, { retryAfter, outcome }: DeliveryResult): Retry {
  const { position, fingerprint, document } = waiting;
  const attempts = waiting.attempts + 1;
  const pause = outcome === 'suspended' ? 0 : (pauseAfter(attempts, { retryAfter }) ?? 'parked');
  return { position, fingerprint, document, attempts, pause };
}
