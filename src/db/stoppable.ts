import { sql } from 'kysely';
import pg from 'pg';
import { rest } from '../repeat.ts';
import type { StopSignal } from '../stop-signal.ts';
import type { Database, DatabaseTransaction } from './database.ts';
import type { Statements } from './statements.ts';
import { inTransaction, type TransactionOptions } from './transaction.ts';

// Milliseconds between two attempts: the first may come between two statements and find none to end.
const cancelEvery = 200;
/** Milliseconds that the database leaves the process to end a statement itself. */
const grace = 5_000;

/**
 * Does work for which a process of the database, `backend`, runs statements. When the signal is given, what runs there is
 * ended and the promise rejects with the signal's reason; never before the work is over, so the connection may be used
 * again.
 */
export async function stoppable<Result>(
  pool: pg.Pool,
  backend: number,
  signal: StopSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  let cancelling: { over: AbortController; ended: Promise<void> } | undefined;
  const onAbort = () => {
    const over = new AbortController();
    cancelling = { over, ended: cancelUntil(over.signal, pool, backend) };
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await work();
  } catch (error) {
    throw signal.aborted && isCancelled(error) ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    // The connection goes back to the pool after this: nobody else's statement is to be hit.
    cancelling?.over.abort();
    await cancelling?.ended;
  }
}

/** A pool whose statements end when the signal is given. */
export function stoppablePool(pool: pg.Pool, signal: StopSignal): Statements {
  return {
    async query<Row extends pg.QueryResultRow>(statement: pg.QueryConfig): Promise<{ rows: Row[] }> {
      signal.throwIfAborted();
      const client = await pool.connect();
      try {
        const result = await stoppable(pool, backendOf(client), signal, () => client.query<Row>(statement));
        client.release();
        return result;
      } catch (error) {
        // As the pool itself does: who knows what state a connection is in whose statement has failed.
        client.release(true);
        throw error;
      }
    },
  };
}

/**
 * A transaction whose statements end when the signal is given, and each of them some time after `timeLimit` milliseconds,
 * also where this process is not there any more to tell.
 */
export async function inStoppableTransaction<Result>(
  { pool, db }: { pool: pg.Pool; db: Database },
  { signal, timeLimit, ...options }: TransactionOptions & { signal: StopSignal; timeLimit: number },
  work: (transaction: DatabaseTransaction) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  return await inTransaction(
    db,
    async (transaction) => {
      const { rows } = await sql<{ backend: number }>`
        select pg_backend_pid() as backend, set_config('statement_timeout', ${String(timeLimit + grace)}, true)`.execute(
        transaction,
      );
      return await stoppable(pool, rows[0]?.backend ?? 0, signal, () => work(transaction));
    },
    options,
  );
}

/** On a connection of its own: those of the pool may all be taken by what is to be ended. */
async function cancelUntil(over: AbortSignal, pool: pg.Pool, backend: number): Promise<void> {
  while (!over.aborted) {
    const { password } = pool.options;
    const client = new pg.Client({ ...pool.options, password });
    client.on('error', () => {});
    try {
      await client.connect();
      while (!over.aborted) {
        await client.query('select pg_cancel_backend($1)', [backend]);
        await rest(cancelEvery, over);
      }
    } catch {
      // The database may be away or have no connection to spare: the work ends with it, or this is tried again.
      await rest(cancelEvery, over);
    } finally {
      await client.end().catch(() => {});
    }
  }
}

/** SQLSTATE 57014: whoever ended it, pg_cancel_backend or a statement_timeout. */
function isCancelled(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '57014';
}

/** The driver keeps it without telling of it in its types. */
function backendOf(client: pg.PoolClient): number {
  const backend = 'processID' in client ? client.processID : undefined;
  if (typeof backend !== 'number') throw new Error('the driver does not tell the process of a connection');
  return backend;
}
