import type { Semaphore } from '../../core/fairness/semaphore.ts';
import { doWork } from '../../core/fairness/work.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { type HistoryToDeliver, type Reading, type ReadingPosition, withoutOwnCreation } from '../changes.ts';
import { type AttemptRecord, recordAttempts } from '../subscriptions/attempt-store.ts';
import type { SubscriptionDocument } from '../subscriptions/schemas.ts';
import type { Sending, Target } from '../targets/target.ts';
import {
  changeState,
  type Holder,
  type LeasedSubscription,
  moveReplay,
  type RunState,
  type StateChange,
} from './run-store.ts';
import { deleteWaiting, type Retry, saveRetries } from './waiting-store.ts';

/** Notifies the tenant of a subscription suspended by failures, in the transaction that suspends it. */
export type NotifySuspended = (
  transaction: DatabaseTransaction,
  suspended: { readonly tenant: string; readonly id: string; readonly name: string; readonly since: Date },
) => Promise<void>;

/** Shared by all runs of a process. */
export interface RunOptions {
  readonly db: Database;
  readonly history: HistoryToDeliver;
  readonly now: () => number;
  readonly attempts: Semaphore;
  readonly reads: Semaphore;
  readonly notifySuspended: NotifySuspended;
  /** For metrics: called after each settlement. */
  readonly onAttempts?: ((type: string, attempts: readonly AttemptRecord[]) => void) | undefined;
}

/** The progress of a run since its last settlement, written in one transaction. */
export interface Settlement extends StateChange {
  readonly attempts?: readonly AttemptRecord[];
  /** Changes to retry or to park. */
  readonly retries?: readonly Retry[];
  /** Positions of changes that no longer wait. */
  readonly done?: readonly number[];
  readonly replay?: { readonly checkpoint: ReadingPosition; readonly isOver: boolean } | undefined;
  /** Additional writes of the transaction. */
  readonly also?: (transaction: DatabaseTransaction) => Promise<void>;
}

/** The run must end: another process has the lease, or the subscription was stopped, changed or deleted. */
export class RunEnded extends Error {
  override readonly name = 'RunEnded';
}

/** A run of a subscription that this process has leased. */
export class DeliveryRun implements Holder {
  readonly tenant: string;
  readonly id: string;
  readonly holder: string;
  readonly document: SubscriptionDocument;
  readonly target: Target;
  readonly sending: Sending;
  readonly #options: RunOptions;
  #state: RunState;

  constructor(
    options: RunOptions,
    { tenant, holder, subscription }: { tenant: string; holder: string; subscription: LeasedSubscription },
    { document, target, sending }: { document: SubscriptionDocument; target: Target; sending: Sending },
  ) {
    this.#options = options;
    this.tenant = tenant;
    this.id = subscription.id;
    this.holder = holder;
    this.document = document;
    this.target = target;
    this.sending = sending;
    this.#state = subscription;
  }

  /** The state after the last settlement. */
  get state(): RunState {
    return this.#state;
  }

  /** Aborted when the run must stop. Attempts in flight are then not settled. */
  get signal(): StopSignal {
    return this.sending.signal;
  }

  get options(): RunOptions {
    return this.#options;
  }

  now(): number {
    return this.#options.now();
  }

  /** Reads changes after a position. Default `q`: the subscription's query. */
  async read(
    after: ReadingPosition,
    { q = this.document.q, ...limits }: { maxItems: number; maxPositions?: number; maxBytes?: number; q?: string },
  ): Promise<Reading> {
    const { history, reads } = this.#options;
    const reading = await reads.use(this.tenant, this.signal, () =>
      history.readMatches(this.tenant, {
        ...limits,
        ...{ q, after, actors: this.document.actors ?? true, signal: this.signal },
        withErasures: this.target.receivesErasures ?? true,
      }),
    );
    return this.target.receivesOwnCreation === true ? reading : withoutOwnCreation(reading, this.document);
  }

  /** Runs an attempt when the semaphore admits it. Rejects when the run must stop. */
  async attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    return await this.#options.attempts.use(this.tenant, this.signal, work);
  }

  /** Writes the progress, even if the run must stop. Throws RunEnded if the run must end afterwards. */
  async settle({ attempts = [], retries = [], done = [], replay, also, ...change }: Settlement): Promise<void> {
    const { db, notifySuspended } = this.#options;
    const settled = await doWork({ tenant: this.tenant, writes: true }, () =>
      inTransaction(db, async (transaction) => {
        const state = await changeState(transaction, this, change);
        if (state === undefined) return undefined;
        await saveRetries(transaction, this, retries);
        await deleteWaiting(transaction, this, done);
        if (replay !== undefined) await moveReplay(transaction, this, replay.checkpoint, replay.isOver);
        await also?.(transaction);
        await recordAttempts(transaction, this.tenant, this.id, attempts);
        if (state.hasFailed && state.failingSince !== null) {
          const { tenant, id } = this;
          await notifySuspended(transaction, { tenant, id, name: this.document.name, since: state.failingSince });
        }
        return state;
      }),
    );
    if (settled === undefined) throw new RunEnded('another run has the lease of the subscription');
    this.#state = settled;
    this.#options.onAttempts?.(this.target.type, attempts);
    if (settled.state !== 'active' && settled.state !== 'retrying') throw new RunEnded('the subscription has stopped');
  }
}

/**
 * Delivers a leased subscription. Returns the milliseconds until its next work other than new and waiting changes; 0 if
 * there is more now.
 */
export type Runner = (run: DeliveryRun) => Promise<number | undefined>;
