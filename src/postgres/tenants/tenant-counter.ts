import pg from 'pg';
import { isWorkerUnreachable } from '../connections/unreachable.ts';
import { mayBeMoved } from '../tenant-moved.ts';

/** The connection was lost during a write, which may or may not have happened. */
export class OutcomeUnknown extends Error {}

/** Any pool of connections. */
export interface CountingPool {
  connect(): Promise<{ query(statement: pg.QueryConfig): Promise<unknown>; release(): void }>;
}

/** Runs a statement that adds counts. Rejects with OutcomeUnknown if the connection is lost during it. */
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

interface TenantCounterOptions<Count> {
  /** Counts with the same key are one row. */
  keyOf: (count: Count) => string;
  /** The sum of two counts of one key, the second of which is newer. */
  sum: (earlier: Count, later: Count) => Count;
  /** Stores the counts, all or none. OutcomeUnknown: they may or may not be stored. */
  add: (counted: readonly Count[]) => Promise<void>;
  /** OutcomeUnknown: the counts may be lost. Any other error: they are stored later. */
  onError: (error: unknown, counted: readonly Count[]) => void;
  /** Milliseconds between two rounds; default 2,000. */
  every?: number;
}

const defaultEvery = 2_000;
/** Counts of one statement. */
const maxAtOnce = 200;

/** Counts in memory what tenants do, and adds the counts to the database every 2 seconds, one statement at a time. */
export class TenantCounter<Count> {
  readonly #options: TenantCounterOptions<Count>;
  readonly #timer: NodeJS.Timeout;
  #counts = new Map<string, Count>();
  #storing: Promise<void> | undefined;

  constructor(options: TenantCounterOptions<Count>) {
    this.#options = options;
    // Not started by a request, whose share of the connections it would use.
    this.#timer = setInterval(() => void this.store(), options.every ?? defaultEvery).unref();
  }

  count(later: Count): void {
    const key = this.#options.keyOf(later);
    const earlier = this.#counts.get(key);
    this.#counts.set(key, earlier === undefined ? later : this.#options.sum(earlier, later));
  }

  /** Stores the counts. Those that cannot be stored are kept for the next time. Never rejects. */
  store(): Promise<void> {
    this.#storing ??= this.#storeAll().finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  /** Stores the rest. Call it after the last request. */
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
        // One by one, so that tenants of other workers do not wait.
        for (const part of counted) await this.#storeSome([part]);
        return;
      }
      this.#options.onError(error, counted);
      // Counts that may be stored are not repeated: a bill may miss seconds, but must not count them twice.
      if (!(error instanceof OutcomeUnknown)) this.#keep(counted);
    }
  }

  /** Merges the counts before those that came since. */
  #keep(counted: readonly Count[]): void {
    const later = [...this.#counts.values()];
    this.#counts = new Map();
    for (const count of [...counted, ...later]) this.count(count);
  }
}
