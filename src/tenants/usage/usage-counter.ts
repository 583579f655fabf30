import { isWorkerUnreachable } from '../../postgres/connections/unreachable.ts';
import { mayBeMoved } from '../../postgres/tenant-moved.ts';
import { type AddedMeasure, OutcomeUnknown } from './usage-store.ts';

export interface UsageCounterOptions {
  /**
   * Stores the counts, all or none. OutcomeUnknown means that nobody knows whether it stored them.
   */
  add: (counted: readonly AddedMeasure[]) => Promise<void>;
  /** OutcomeUnknown: the counts may be lost. Any other error: they are stored later. */
  onError: (error: unknown, counted: readonly AddedMeasure[]) => void;
  /** Milliseconds between two rounds; default 2,000. */
  every?: number;
}

const defaultEvery = 2_000;
/** Counts of one statement. */
const maxAtOnce = 200;

/**
 * Counts in memory what tenants use, and adds it to the database together, every 2 seconds. One statement is under way at a
 * time; what is counted meanwhile goes with the next one.
 */
export class UsageCounter {
  readonly #options: UsageCounterOptions;
  readonly #timer: NodeJS.Timeout;
  #counts = new Map<string, AddedMeasure>();
  #storing: Promise<void> | undefined;

  constructor(options: UsageCounterOptions) {
    this.#options = options;
    // Begun here and not by a request: work that a request begins uses that request's share of the connections.
    this.#timer = setInterval(() => void this.store(), options.every ?? defaultEvery).unref();
  }

  count(added: readonly AddedMeasure[]): void {
    for (const { tenant, day, measure, amount } of added) {
      const key = `${day} ${measure} ${tenant}`;
      this.#counts.getOrInsertComputed(key, () => ({ tenant, day, measure, amount: 0 })).amount += amount;
    }
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
    const counted = [...this.#counts.values()];
    this.#counts = new Map();
    for (let begin = 0; begin < counted.length; begin += maxAtOnce) {
      await this.#storeSome(counted.slice(begin, begin + maxAtOnce));
    }
  }

  async #storeSome(counted: readonly AddedMeasure[]): Promise<void> {
    try {
      await this.#options.add(counted);
    } catch (error) {
      if ((isWorkerUnreachable(error) || mayBeMoved(error)) && counted.length > 1) {
        // The tenants of the other workers do not wait.
        for (const part of counted) await this.#storeSome([part]);
        return;
      }
      this.#options.onError(error, counted);
      // What may have been stored is not stored again: a bill may miss seconds, and must not count them twice.
      if (!(error instanceof OutcomeUnknown)) this.count(counted);
    }
  }
}
