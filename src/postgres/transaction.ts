import { setTimeout as sleep } from 'node:timers/promises';
import type { IsolationLevel } from 'kysely';
import type pg from 'pg';
import { hasCode } from '../core/errors.ts';
import type { Database, DatabaseTransaction } from './database.ts';
import { mayBeMoved } from './tenant-moved.ts';

interface TransactionOptions {
  isolation?: IsolationLevel;
  /** Retries after a serialization failure or a deadlock; default 0, since only callers know if work can run twice. */
  retries?: number;
}

/** Runs the work in one transaction. The transaction commits when the work returns and rolls back when it throws. */
export async function inTransaction<Result>(
  db: Database,
  work: (transaction: DatabaseTransaction) => Promise<Result>,
  options: TransactionOptions = {},
): Promise<Result> {
  return await again(options.retries ?? 0, async () => {
    const transaction = db.transaction();
    const isolated = options.isolation === undefined ? transaction : transaction.setIsolationLevel(options.isolation);
    return await isolated.execute(work);
  });
}

/** Runs a transaction on a connection of the pool, for statements that the query builder lacks, such as COPY. */
export async function inPoolTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
  options: TransactionOptions = {},
): Promise<Result> {
  return await again(options.retries ?? 0, async () => {
    const client = await pool.connect();
    try {
      await client.query(`begin${options.isolation === undefined ? '' : ` isolation level ${options.isolation}`}`);
      const result = await work(client);
      await client.query('commit');
      client.release();
      return result;
    } catch (error) {
      // If a rollback fails, the connection is closed.
      const rolledBack = await client.query('rollback').then(
        () => true,
        () => false,
      );
      client.release(!rolledBack);
      throw error;
    }
  });
}

/**
 * Whether the transaction failed because of another one (SQLSTATE 40001, 40P01), or because a cluster moved its tenant,
 * and may succeed when retried.
 */
export function isLostRace(error: unknown): boolean {
  if (mayBeMoved(error)) return true;
  return hasCode(error, '40001', '40P01');
}

/** Milliseconds. */
const maxRetryPause = 50;

async function again<Result>(retries: number, attempt: () => Promise<Result>): Promise<Result> {
  for (let left = retries; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (left <= 0 || !isLostRace(error)) throw error;
      // Jitter keeps the same transactions from colliding again.
      await sleep(Math.random() * maxRetryPause);
    }
  }
}
