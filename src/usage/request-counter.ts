import { mayBeMoved } from '../db/cluster/tenant-moved.ts';
import { isWorkerUnreachable } from '../db/connections/unreachable.ts';
import { dayOf } from './days.ts';
import { type CountedRequests, OutcomeUnknown } from './usage-store.ts';

export interface RequestCounterOptions {
  /** Stores the counts, all or none. OutcomeUnknown means that nobody knows whether it did. */
  add: (counted: readonly CountedRequests[]) => Promise<void>;
  now: () => number;
  onError: (error: unknown) => void;
  /** Milliseconds between two rounds; default 2,000. */
  every?: number;
}

const defaultEvery = 2_000;
/** Tenants of one statement. */
const maxAtOnce = 200;

/** Counts the requests of tenants in memory, and adds them to the database in one statement every 2 seconds. */
export class RequestCounter {
  readonly #options: RequestCounterOptions;
  readonly #timer: NodeJS.Timeout;
  #counts = new Map<string, CountedRequests>();
  #storing: Promise<void> | undefined;

  constructor(options: RequestCounterOptions) {
    this.#options = options;
    // Begun here and not by a request: work that a request begins uses that request's share of the connections.
    this.#timer = setInterval(() => void this.store(), options.every ?? defaultEvery).unref();
  }

  count(tenant: string): void {
    this.#add({ tenant, day: dayOf(this.#options.now()), requests: 1 });
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

  async #storeSome(counted: readonly CountedRequests[]): Promise<void> {
    try {
      await this.#options.add(counted);
    } catch (error) {
      if ((isWorkerUnreachable(error) || mayBeMoved(error)) && counted.length > 1) {
        // The tenants of the other workers do not wait.
        for (const part of counted) await this.#storeSome([part]);
        return;
      }
      this.#options.onError(error);
      // What may have been stored is not stored again: a bill may miss seconds, and must not count them twice.
      if (!(error instanceof OutcomeUnknown)) for (const part of counted) this.#add(part);
    }
  }

  #add({ tenant, day, requests }: CountedRequests): void {
    const key = `${day} ${tenant}`;
    const known = this.#counts.get(key);
    if (known === undefined) this.#counts.set(key, { tenant, day, requests });
    else known.requests += requests;
  }
}
