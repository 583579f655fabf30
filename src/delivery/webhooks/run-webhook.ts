import { millisecondsOf } from '../../core/duration.ts';
import { AnnalsError } from '../../core/errors.ts';
import type { DeliveredChange, ReadingPosition } from '../changes.ts';
import type { Held } from '../dispatch/held.ts';
import { type Counts, findReplay, maxWaiting } from '../dispatch/held-store.ts';
import { type Postponed, readDue, readKnown, type WaitingChange } from '../dispatch/waiting-store.ts';
import type { MadeAttempt } from '../subscriptions/attempt-store.ts';
import type { DeliveryResult } from '../targets/target.ts';
import { Pace } from './pace.ts';
import { pauseAfter } from './schedule.ts';
import { defaultConcurrency } from './webhook-schema.ts';

/** Changes that are read, delivered and settled together. */
const portion = 100;
const dueAtOnce = 100;

/**
 * Delivers one change in a call: what waits for an attempt, what is new, and what is replayed, beside each other. Changes of one
 * document come one after another; others at most `concurrency` at once. A change that fails waits, and its document with it. A target
 * that cannot be reached, or is too busy, is left alone for a while.
 */
export async function runWebhook(held: Held): Promise<undefined> {
  const { concurrency = defaultConcurrency } = held.document.target as { concurrency?: number };
  const { unreachable, slowed } = held.state;
  const pace = new Pace({ concurrency, isCareful: unreachable > 0 || slowed > 0, unreachable, slowed });
  const run = { held, pace };
  const ends = await Promise.allSettled([deliverDue(run), deliverNew(run), deliverReplay(run)]);
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

interface WebhookRun {
  readonly held: Held;
  readonly pace: Pace;
}

/** How an attempt ended, or that none was made. */
type Tried = { readonly at: number; readonly result: DeliveryResult } | 'unsettled';

/** What became of a change that was read. `held`: an earlier one of its document waits. `known`: it waits itself. */
type Fate = Tried | 'held' | 'skipped' | 'known';

/** What waits and is due, of each document the first. */
async function deliverDue(run: WebhookRun): Promise<void> {
  const { held, pace } = run;
  while (!pace.isOver) {
    const due = await readDue(held.options.db, held, pace.isCareful ? 1 : dueAtOnce);
    if (due.length === 0) return;
    const changes = await readAgain(held, due);
    const outcomes = await Promise.all(
      due.map(async ({ position }) => {
        const change = changes.get(position) ?? 'expired';
        return change === 'expired' ? change : await attempt(run, change);
      }),
    );
    const counts = { delivered: 0, dropped: 0, waiting: 0, parked: 0 };
    const [attempts, kept, gone]: [MadeAttempt[], Postponed[], number[]] = [[], [], []];
    for (const [index, fate] of outcomes.entries()) {
      const waiting = due[index];
      if (waiting === undefined || fate === 'unsettled') continue;
      if (fate === 'expired') {
        gone.push(waiting.position);
        counts.dropped += 1;
        counts.waiting -= 1;
        continue;
      }
      attempts.push(attemptOf(fate, 'live', waiting.position));
      if (fate.result.outcome === 'delivered') {
        gone.push(waiting.position);
        counts.delivered += 1;
        counts.waiting -= 1;
      } else if (fate.result.outcome !== 'refused') {
        const later = postponed(waiting, fate.result);
        kept.push(later);
        if (later.pause === 'parked') {
          counts.waiting -= 1;
          counts.parked += 1;
        }
      }
    }
    await held.settle({ counts, kept, gone, attempts, health: pace.takeHealth() });
  }
}

/** Positions of one reading of what waits. */
const span = 200;

/** Reads the entries of waiting changes again, since what was to be sent is not kept: by position, those that are still there. */
async function readAgain(
  held: Held,
  waiting: readonly WaitingChange[],
): Promise<Map<number, DeliveredChange | 'expired'>> {
  const found = new Map<number, DeliveredChange | 'expired'>();
  let left = [...waiting].sort((one, other) => one.position - other.position);
  for (let first = left[0]; first !== undefined; first = left[0]) {
    const from = first.position - 1;
    const together = left.filter(({ position }) => position <= from + span);
    const fingerprint = (await held.options.history.fingerprintAt(held.tenant, from)) ?? 0;
    const maxPositions = (together.at(-1)?.position ?? 0) - from;
    const asked = { maxItems: span, maxPositions, q: '' };
    const { items, reached } = await held.read({ position: from, fingerprint }, asked);
    const byPosition = new Map(items.map((item) => [item.position, item]));
    for (const one of together.filter(({ position }) => position <= reached.position)) {
      const change = byPosition.get(one.position);
      if (change !== undefined && change.fingerprint !== one.fingerprint) {
        throw new AnnalsError('cursor_invalid', 'The database was restored to an earlier state.');
      }
      found.set(one.position, change ?? 'expired');
    }
    if (!found.has(first.position)) throw new Error('a reading has not reached its first position');
    left = left.filter(({ position }) => !found.has(position));
  }
  return found;
}

/** What has been recorded since. */
async function deliverNew(run: WebhookRun): Promise<void> {
  const { held, pace } = run;
  for (;;) {
    const { state } = held;
    const room = Math.min(portion, maxWaiting - state.waiting);
    if (room <= 0 || pace.isOver) return;
    const reading = await held.read(state, { maxItems: room });
    if (reading.items.length === 0 && reading.reached.position === state.position) return;
    const maxAge = held.document.maxAge === undefined ? undefined : millisecondsOf(held.document.maxAge);
    const tooOld = ({ at, recordedAt }: DeliveredChange) => maxAge !== undefined && recordedAt - at > maxAge;
    const done = await deliverPortion(run, reading.items, { kind: 'live', tooOld, keepsAll: reading.expired > 0 });
    const { counts, kept, gone, attempts, end } = done;
    const place = end === 'all' ? { ...reading.reached, cursor: reading.cursor } : end;
    const expired = end === 'all' ? reading.expired : 0;
    await held.settle({ counts: { ...counts, expired }, kept, gone, attempts, place, health: pace.takeHealth() });
    if (end !== 'all' || (reading.caughtUp && reading.items.length < room)) return;
  }
}

/** What somebody wants to have once more, from one position to another. */
async function deliverReplay(run: WebhookRun): Promise<void> {
  const { held, pace } = run;
  for (;;) {
    const room = Math.min(portion, maxWaiting - held.state.waiting);
    if (room <= 0 || pace.isOver) return;
    const replay = await findReplay(held.options.db, held.tenant, held.id);
    if (replay === undefined) return;
    const maxPositions = Math.min(10_000, replay.until - replay.position);
    const reading = await held.read(replay, { maxItems: room, maxPositions });
    const done = await deliverPortion(run, reading.items, { kind: 'replay', tooOld: () => false, keepsAll: true });
    const { counts, kept, gone, attempts } = done;
    const place = reading.reached;
    const isOver = place.position >= replay.until || place.position === replay.position;
    await held.settle({
      ...{ kept, gone, attempts, health: pace.takeHealth() },
      counts: { ...counts, expired: reading.expired },
      replay: { place, isOver },
    });
  }
}

interface PortionDone {
  readonly counts: Counts;
  readonly kept: readonly Postponed[];
  readonly gone: readonly number[];
  readonly attempts: readonly MadeAttempt[];
  /** Where the settled changes end: with all that were read, or with one of them; undefined: none is settled. */
  readonly end: 'all' | (ReadingPosition & { readonly cursor: string }) | undefined;
}

/**
 * Delivers changes that were read together. Where the run is over before all are tried, those behind the last one that was tried are
 * read again later; those before it wait. With `keepsAll` all that were not tried wait.
 */
async function deliverPortion(
  run: WebhookRun,
  items: readonly DeliveredChange[],
  {
    kind,
    tooOld,
    keepsAll,
  }: { kind: 'live' | 'replay'; tooOld: (change: DeliveredChange) => boolean; keepsAll: boolean },
): Promise<PortionDone> {
  const { held } = run;
  if (items.length === 0) return { counts: {}, kept: [], gone: [], attempts: [], end: 'all' };
  const documents = [...new Set(items.map(({ document }) => document))];
  const positions = items.map(({ position }) => position);
  const { held: heldBack, known } = await readKnown(held.options.db, held, documents, positions);
  const turns = new Map<string, Promise<unknown>>();
  const fates = await Promise.all(
    items.map(async (change): Promise<Fate> => {
      const { document, position } = change;
      if (known.get(position) === 'waiting') return 'known';
      if (tooOld(change)) return 'skipped';
      const deliver = async (): Promise<Fate> => {
        if (heldBack.has(document)) return 'held';
        const fate = await attempt(run, change);
        if (fate === 'unsettled' || fate.result.outcome !== 'delivered') heldBack.add(document);
        return fate;
      };
      const turn = (turns.get(document) ?? Promise.resolve()).then(deliver);
      turns.set(
        document,
        turn.catch(() => {}),
      );
      return await turn;
    }),
  );
  const isOpen = (fate: Fate | undefined) =>
    fate === 'unsettled' || (typeof fate === 'object' && fate.result.outcome === 'refused');
  const lastTried = fates.findLastIndex((fate) => typeof fate === 'object' && !isOpen(fate));
  const hasOpen = fates.some(isOpen);
  const settled = !hasOpen || keepsAll ? items.length : lastTried + 1;
  const counts = { matched: 0, delivered: 0, skipped: 0, waiting: 0, parked: 0 };
  const [attempts, kept, gone]: [MadeAttempt[], Postponed[], number[]] = [[], [], []];
  for (const [index, change] of items.entries()) {
    const fate = fates[index];
    const { position } = change;
    if (typeof fate === 'object') attempts.push(attemptOf(fate, kind, position));
    if (index >= settled || fate === 'known' || fate === undefined) continue;
    const wasParked = known.get(position) === 'parked';
    if (wasParked) counts.parked -= 1;
    else counts.matched += 1;
    if (fate === 'skipped') counts.skipped += 1;
    else if (typeof fate === 'object' && fate.result.outcome === 'delivered') {
      counts.delivered += 1;
      if (wasParked) gone.push(position);
    } else {
      const waiting = { ...change, attempts: 0, pause: 0 };
      kept.push(typeof fate === 'object' && !isOpen(fate) ? postponed(waiting, fate.result) : waiting);
      counts.waiting += 1;
    }
  }
  const last = items[settled - 1];
  return { counts, kept, gone, attempts, end: settled === items.length ? 'all' : last };
}

/** One attempt, when the pace of the target and the shares of the tenants allow it. */
async function attempt({ held, pace }: WebhookRun, change: DeliveredChange): Promise<Tried> {
  return await pace.inTurn(async (): Promise<Tried> => {
    try {
      const tried = await held.attempt(async () => ({ at: held.now(), result: await send(held, change) }));
      // What the end of the run has cut is not the target's failure.
      if (held.signal.aborted && tried.result.outcome !== 'delivered') return 'unsettled';
      pace.hear(tried.result);
      return tried;
    } catch (error) {
      if (held.signal.aborted) return 'unsettled';
      throw error;
    }
  });
}

async function send({ target, sending }: Held, change: DeliveredChange): Promise<DeliveryResult> {
  if (target.deliverOne === undefined) throw new Error(`the target ${target.type} takes no single changes`);
  return await target.deliverOne(sending, change);
}

function attemptOf({ at, result }: Exclude<Tried, string>, kind: 'live' | 'replay', position: number): MadeAttempt {
  return { kind, at, result, first: position, last: position };
}

/** After 410 the change is tried at once when somebody resumes the subscription. */
function postponed(waiting: WaitingChange, { retryAfter, outcome }: DeliveryResult): Postponed {
  const { position, fingerprint, document } = waiting;
  const attempts = waiting.attempts + 1;
  const pause = outcome === 'suspended' ? 0 : (pauseAfter(attempts, { retryAfter }) ?? 'parked');
  return { position, fingerprint, document, attempts, pause };
}
