import type { Semaphore } from '../../core/concurrency/semaphore.ts';
import { doWork } from '../../core/concurrency/work.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { HistoryToDeliver, Reading, ReadingPosition } from '../changes.ts';
import { type MadeAttempt, noteAttempts } from '../subscriptions/attempt-store.ts';
import type { SubscriptionDocument } from '../subscriptions/schemas.ts';
import type { Sending, Target } from '../targets/target.ts';
import {
  changeState,
  type HeldState,
  type Holder,
  moveReplay,
  type StateChange,
  type TakenSubscription,
} from './held-store.ts';
import { deleteWaiting, keepWaiting, type Postponed } from './waiting-store.ts';

/** Tells the tenant that a subscription is suspended because of nothing but failures, in the transaction that suspends it. */
export type TellSuspended = (
  transaction: DatabaseTransaction,
  suspended: { readonly tenant: string; readonly id: string; readonly name: string; readonly since: Date },
) => Promise<void>;

/** What all runs of a process share. */
export interface RunOptions {
  readonly db: Database;
  readonly history: HistoryToDeliver;
  readonly now: () => number;
  /** Places for attempts, shared by all tenants. */
  readonly attempts: Semaphore;
  /** Places for readings. */
  readonly reads: Semaphore;
  readonly tellSuspended: TellSuspended;
  /** For metrics: called after each settlement. */
  readonly onAttempts?: ((type: string, attempts: readonly MadeAttempt[]) => void) | undefined;
}

/** What a run has done since it last settled. All of it is written in one transaction. */
export interface Settlement extends StateChange {
  readonly attempts?: readonly MadeAttempt[];
  /** Changes that wait from now on, or are parked. */
  readonly kept?: readonly Postponed[];
  /** Positions of changes that wait no more. */
  readonly gone?: readonly number[];
  readonly replay?: { readonly place: ReadingPosition; readonly isOver: boolean } | undefined;
  /** What else belongs to it. */
  readonly also?: (transaction: DatabaseTransaction) => Promise<void>;
}

/** The run has to end: another process holds the subscription, or somebody has stopped, written or deleted it. */
export class RunEnded extends Error {
  override readonly name = 'RunEnded';
}

/** A subscription that this process delivers at the moment. */
export class Held implements Holder {
  readonly tenant: string;
  readonly id: string;
  readonly holder: string;
  readonly document: SubscriptionDocument;
  readonly target: Target;
  readonly sending: Sending;
  readonly #options: RunOptions;
  #state: HeldState;

  constructor(
    options: RunOptions,
    { tenant, holder, taken }: { tenant: string; holder: string; taken: TakenSubscription },
    { document, target, sending }: { document: SubscriptionDocument; target: Target; sending: Sending },
  ) {
    this.#options = options;
    this.tenant = tenant;
    this.id = taken.id;
    this.holder = holder;
    this.document = document;
    this.target = target;
    this.sending = sending;
    this.#state = taken;
  }

  /** After the last settlement. */
  get state(): HeldState {
    return this.#state;
  }

  /** Aborted when the run is to stop: what is on its way is not settled then. */
  get signal(): StopSignal {
    return this.sending.signal;
  }

  get options(): RunOptions {
    return this.#options;
  }

  now(): number {
    return this.#options.now();
  }

  /** Reads on behind a place, with the subscription's query unless told. */
  async read(
    after: ReadingPosition,
    { q = this.document.q, ...asked }: { maxItems: number; maxPositions?: number; maxBytes?: number; q?: string },
  ): Promise<Reading> {
    const { history, reads } = this.#options;
    return await reads.use(this.tenant, this.signal, () =>
      history.readMatches(this.tenant, {
        ...asked,
        ...{ q, after, withErasures: this.target.tellsErasures ?? true, signal: this.signal },
      }),
    );
  }

  /** Does an attempt when it has a place. Rejects when the run is to stop. */
  async attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    return await this.#options.attempts.use(this.tenant, this.signal, work);
  }

  /** Writes what was done, also if the run is to stop. Throws RunEnded if the run has to end after it. */
  async settle({ attempts = [], kept = [], gone = [], replay, also, ...change }: Settlement): Promise<void> {
    const { db, tellSuspended } = this.#options;
    const settled = await doWork({ tenant: this.tenant, writes: true }, () =>
      inTransaction(db, async (transaction) => {
        const state = await changeState(transaction, this, change);
        if (state === undefined) return undefined;
        await keepWaiting(transaction, this, kept);
        await deleteWaiting(transaction, this, gone);
        if (replay !== undefined) await moveReplay(transaction, this, replay.place, replay.isOver);
        await also?.(transaction);
        await noteAttempts(transaction, this.tenant, this.id, attempts);
        if (state.hasFailed && state.failingSince !== null) {
          const { tenant, id } = this;
          await tellSuspended(transaction, { tenant, id, name: this.document.name, since: state.failingSince });
        }
        return state;
      }),
    );
    if (settled === undefined) throw new RunEnded('the subscription is held by another run');
    this.#state = settled;
    this.#options.onAttempts?.(this.target.type, attempts);
    if (settled.state !== 'active' && settled.state !== 'retrying') throw new RunEnded('the subscription has stopped');
  }
}

/**
 * Delivers what a held subscription has to deliver now. Returns the milliseconds until it has something to do besides new changes: 0 where
 * it has more to do at once; undefined where it has nothing but what waits in its table.
 */
export type Run = (held: Held) => Promise<number | undefined>;
