import { isWorkerUnreachable } from '../../postgres/connections/unreachable.ts';
import { mayBeMoved } from '../../postgres/tenant-moved.ts';
import { type AddedMeasure, OutcomeUnknown } from './usage-store.ts';

export interface UsageCounterOptions {
  /**
   * Stores the counts, all or none, and calls `onSent` when the database has the statement, before it has answered.
   * OutcomeUnknown means that nobody knows whether it stored them.
   */
  add: (counted: readonly AddedMeasure[], onSent: () => void) => Promise<void>;
  /** OutcomeUnknown: the counts may be lost. Any other error: they are stored later. */
  onError: (error: unknown, counted: readonly AddedMeasure[]) => void;
  /** Milliseconds between two rounds; default 2,000. */
  every?: number;
}

const defaultEvery = 2_000;
/** Counts of one statement. */
const maxAtOnce = 200;

/**
 * Counts in memory what tenants use, and adds it to the database together: every 2 seconds, and at once where a caller waits.
 * One statement is under way at a time; what is counted meanwhile goes with the next one.
 */
export class UsageCounter {
  readonly #options: UsageCounterOptions;
  readonly #timer: NodeJS.Timeout;
  #counts = new Map<string, AddedMeasure>();
  #storing: Promise<void> | undefined;
  /** Whether the last round failed. Then only the timer tries again, so callers neither wait nor fail one by one. */
  #failed = false;
  /** What the callers wait for whose counts are in no statement yet. */
  #sent: PromiseWithResolvers<void> | undefined;

  constructor(options: UsageCounterOptions) {
    this.#options = options;
    // Begun here and not by a request: work that a request begins uses that request's share of the connections.
    this.#timer = setInterval(() => void this.store(), options.every ?? defaultEvery).unref();
  }

  count(added: readonly AddedMeasure[]): void {
    for (const { tenant, day, measure, amount } of added) {
      const key = `${day} ${measure} ${tenant}`;
      const known = this.#counts.get(key);
      if (known === undefined) this.#counts.set(key, { tenant, day, measure, amount });
      else known.amount += amount;
    }
  }

  /**
   * Counts, and resolves when the database has the statement with these counts: it carries it out even where this process is
   * killed now. Where the database does not take it, the counts are kept for the next round. Never rejects.
   */
  async countNow(added: readonly AddedMeasure[]): Promise<void> {
    this.count(added);
    if (this.#failed) return;
    this.#sent ??= Promise.withResolvers<void>();
    const { promise } = this.#sent;
    void this.store();
    await promise;
  }

  /** Stores what was counted. What cannot be stored is kept for the next time. Never rejects. */
  store(): Promise<void> {
    this.#storing ??= this.#storeAll().finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  /** Stores what is left. To be called when no request runs any more. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#storing;
    await this.store();
  }

  async #storeAll(): Promise<void> {
    do {
      const sent = this.#sent;
      this.#sent = undefined;
      this.#failed = false;
      const counted = [...this.#counts.values()];
      this.#counts = new Map();
      for (let begin = 0; begin < counted.length; begin += maxAtOnce) {
        const isLast = begin + maxAtOnce >= counted.length;
        await this.#storeSome(counted.slice(begin, begin + maxAtOnce), () => isLast && sent?.resolve());
      }
      sent?.resolve();
    } while (this.#sent !== undefined);
  }

  async #storeSome(counted: readonly AddedMeasure[], onSent: () => void): Promise<void> {
    try {
      await this.#options.add(counted, onSent);
    } catch (error) {
      if ((isWorkerUnreachable(error) || mayBeMoved(error)) && counted.length > 1) {
        // The tenants of the other workers do not wait.
        for (const part of counted) await this.#storeSome([part], () => {});
        return;
      }
      this.#failed = true;
      this.#options.onError(error, counted);
      // What may have been stored is not stored again: a bill may miss seconds, and must not count them twice.
      if (!(error instanceof OutcomeUnknown)) this.count(counted);
    }
  }
}
