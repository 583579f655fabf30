import pg from 'pg';
import { closeAfter } from './unreachable.ts';

/** Milliseconds that the preparation of a connection may take; tables may be locked. Then Annals closes it. */
const maxPreparation = 2_000;
/** Connections that may be lost one after another while they are prepared. Then Annals prepares no more. */
const maxLost = 3;

export interface WarmConnectionsOptions {
  readonly pool: pg.Pool;
  /** Maximum number of connections that are warm at a time; the pool keeps as many open. */
  readonly kept: number;
  /** Default: `maxPreparation`; other values for tests. */
  readonly limit?: number | undefined;
}

/**
 * Has some connections of a pool carry out statements that read nothing, so that the server has planned what callers ask. A new connection
 * plans each statement when it first comes. A connection is prepared when its caller gives it back, one at a time, and only if nobody
 * waits for one.
 */
export class WarmConnections {
  readonly #pool: pg.Pool;
  readonly #kept: number;
  readonly #limit: number;
  /** The pool's connections; others are only given back. */
  readonly #own = new WeakSet<pg.PoolClient>();
  readonly #warm = new Set<pg.PoolClient>();
  #statements: readonly pg.QueryConfig[] = [];
  #isPreparing = false;
  /** Since the last one that was prepared. */
  #lost = 0;

  constructor({ pool, kept, limit = maxPreparation }: WarmConnectionsOptions) {
    this.#pool = pool;
    this.#kept = kept;
    this.#limit = limit;
    pool.on('connect', (client) => this.#own.add(client));
    pool.on('remove', (client) => this.#warm.delete(client));
  }

  /**
   * Opens as many connections as are kept and prepares them, and from now on those that take their places. Rejects if a connection cannot
   * be opened.
   */
  async open(statements: readonly pg.QueryConfig[]): Promise<void> {
    this.#statements = statements;
    const missing = Math.max(0, this.#kept - this.#warm.size);
    const opened = await Promise.allSettled(Array.from({ length: missing }, () => this.#pool.connect()));
    for (const outcome of opened) {
      if (outcome.status === 'fulfilled') await this.#prepareAndRelease(outcome.value);
    }
    for (const outcome of opened) if (outcome.status === 'rejected') throw outcome.reason;
  }

  /** Gives a connection back to the pool, or closes it. */
  giveBack(client: pg.PoolClient, destroy: boolean | Error): void {
    // The pool tells of it only when the connection has ended, and another one may have taken its place by then.
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
      // What fails once, for instance because another version has replaced a routine, would fail each time.
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
