import pg from 'pg';
import { isWorkerUnreachable } from '../connections/unreachable.ts';
import { mayBeMoved } from '../tenant-moved.ts';

/** The connection was lost while the database wrote: it may or may not have done so. */
export class OutcomeUnknown extends Error {}

/** A pool of connections, whatever shares it has. */
export interface CountingPool {
  connect(): Promise<{ query(statement: pg.QueryConfig): Promise<unknown>; release(): void }>;
}

/** Runs a statement that adds counts. Rejects with OutcomeUnknown where the connection was lost while it ran. */
export async function addCounts(pool: CountingPool, statement: pg.QueryConfig): Promise<void> {
  const connection = await pool.connect();
  try {
    await connection.query(statement);
  } catch (error) {
    if (error instanceof pg.DatabaseError) throw error;
    throw new OutcomeUnknown('The connection was lost while counts of tenants were added.', { cause: error });
  } finally {
    connection.release();
  }
}

export interface TenantCounterOptions<Count> {
  /** Counts with the same key are one row. */
  keyOf: (count: Count) => string;
  /** The sum of two counts of one key, the second of which is newer. */
  sum: (earlier: Count, later: Count) => Count;
  /**
   * Stores the counts, all or none. OutcomeUnknown: they may or may not have been stored.
   */
  add: (counted: readonly Count[]) => Promise<void>;
  /** OutcomeUnknown: the counts may be lost. Any other error: they are stored later. */
  onError: (error: unknown, counted: readonly Count[]) => void;
  /** Milliseconds between two rounds; default 2,000. */
  every?: number;
}

const defaultEvery = 2_000;
/** Counts of one statement. */
const maxAtOnce = 200;

/**
 * Counts in memory what tenants do, and adds it to the database together, every 2 seconds. One statement is under way at a
 * time; what is counted while it runs goes with the next one.
 */
export class TenantCounter<Count> {
  readonly #options: TenantCounterOptions<Count>;
  readonly #timer: NodeJS.Timeout;
  #counts = new Map<string, Count>();
  #storing: Promise<void> | undefined;

  constructor(options: TenantCounterOptions<Count>) {
    this.#options = options;
    // Begun here and not by a request: work that a request begins uses that request's share of the connections.
    this.#timer = setInterval(() => void this.store(), options.every ?? defaultEvery).unref();
  }

  count(later: Count): void {
    const key = this.#options.keyOf(later);
    const earlier = this.#counts.get(key);
    this.#counts.set(key, earlier === undefined ? later : this.#options.sum(earlier, later));
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

  async #storeSome(counted: readonly Count[]): Promise<void> {
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
      if (!(error instanceof OutcomeUnknown)) this.#keep(counted);
    }
  }

  /** What was counted since is newer. */
  #keep(counted: readonly Count[]): void {
    const later = [...this.#counts.values()];
    this.#counts = new Map();
    for (const count of [...counted, ...later]) this.count(count);
  }
}
