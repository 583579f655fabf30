import pg from 'pg';
import { closeAfter } from './unreachable.ts';

/** Milliseconds after which a connection in preparation is closed, since tables may be locked. */
const maxPreparation = 2_000;
/** Consecutive connections lost in preparation after which no more are prepared. */
const maxLost = 3;

interface WarmConnectionsOptions {
  readonly pool: pg.Pool;
  /** Maximum number of warm connections; the pool keeps as many open. */
  readonly kept: number;
  /** Default: `maxPreparation`; other values for tests. */
  readonly limit?: number | undefined;
}

/**
 * Prepares some connections of a pool with statements that read nothing, so that the server has planned them: a new
 * connection plans each statement on first use. Connections are prepared one at a time, when they are released, and
 * only if no caller waits for one.
 */
export class WarmConnections {
  readonly #pool: pg.Pool;
  readonly #kept: number;
  readonly #limit: number;
  /** The pool's connections; others are only released. */
  readonly #own = new WeakSet<pg.PoolClient>();
  readonly #warm = new Set<pg.PoolClient>();
  #statements: readonly pg.QueryConfig[] = [];
  #isPreparing = false;
  /** Since the last success. */
  #lost = 0;

  constructor({ pool, kept, limit = maxPreparation }: WarmConnectionsOptions) {
    this.#pool = pool;
    this.#kept = kept;
    this.#limit = limit;
    pool.on('connect', (client) => this.#own.add(client));
    pool.on('remove', (client) => this.#warm.delete(client));
  }

  /** Opens and prepares the kept connections, and later their replacements. Rejects if one cannot be opened. */
  async open(statements: readonly pg.QueryConfig[]): Promise<void> {
    this.#statements = statements;
    const missing = Math.max(0, this.#kept - this.#warm.size);
    const opened = await Promise.allSettled(Array.from({ length: missing }, () => this.#pool.connect()));
    for (const outcome of opened) {
      if (outcome.status === 'fulfilled') await this.#prepareAndRelease(outcome.value);
    }
    for (const outcome of opened) if (outcome.status === 'rejected') throw outcome.reason;
  }

  /** Returns a connection to the pool, or closes it. */
  release(client: pg.PoolClient, destroy: boolean | Error): void {
    // The pool's event comes only when the connection has ended, and it may be replaced by then.
    if (destroy) this.#warm.delete(client);
    if (destroy || this.#isPreparing) client.release(destroy);
    else void this.#prepareAndRelease(client);
  }

  /** At once if the connection needs no preparation. Never rejects. */
  async #prepareAndRelease(client: pg.PoolClient): Promise<void> {
    if (!this.#mayPrepare(client)) {
      client.release();
      return;
    }
    this.#isPreparing = true;
    const answered = closeAfter(client, this.#limit);
    let isLost = false;
    try {
      for (const statement of this.#statements) await client.query(statement);
      this.#warm.add(client);
      this.#lost = 0;
    } catch (error) {
      isLost = !(error instanceof pg.DatabaseError) || error.severity === 'FATAL';
      if (isLost) this.#lost += 1;
      // A statement that fails, for example after another version replaced a routine, would fail each time.
      if (!isLost || this.#lost === maxLost) this.#statements = [];
    } finally {
      answered();
      this.#isPreparing = false;
      client.release(isLost);
    }
  }

  #mayPrepare(client: pg.PoolClient): boolean {
    return (
      this.#statements.length > 0 &&
      this.#warm.size < this.#kept &&
      this.#own.has(client) &&
      !this.#warm.has(client) &&
      this.#pool.waitingCount === 0 &&
      !this.#pool.ending
    );
  }
}
