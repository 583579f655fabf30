import { lineOf } from './attribute.ts';
import type { Client } from './internals.ts';
import type { Line } from './line.ts';

interface Queries {
  query(text: string): Promise<{ readonly command?: string }>;
}

/** A client of pg. */
export interface TransactionClient {
  // biome-ignore lint/suspicious/noExplicitAny: pg's own overloads.
  query(...values: any[]): any;
}

/** A pool of pg. */
export interface TransactionPool<C extends TransactionClient> {
  connect(): Promise<C & { release(error?: Error | boolean): void }>;
}

/**
 * Runs `fn` in a transaction whose statements are all attributed, so that CALL, DO and functions that write are too. On
 * a pool it takes a client and returns it; on a client that is in a transaction, it covers the rest of that transaction
 * and leaves its end to the application. Rolls back and throws what `fn` throws. Throws if the server rolled back.
 *
 * @example
 * await attribute.transaction(pool, (client) => client.query('call close_month($1)', ['2026-11']));
 */
export async function transaction<C extends TransactionClient, T>(
  target: TransactionPool<C> | C,
  fn: (client: C) => T | Promise<T>,
): Promise<T> {
  if ('query' in target && !('_pulseQueue' in target)) return await inTransaction(target as C, fn);
  const client = await (target as TransactionPool<C>).connect();
  let isBroken = false;
  try {
    return await inTransaction(client, fn);
  } catch (error) {
    // A transaction that could not be rolled back must not reach the next user of the pool.
    isBroken = lineOf(client as unknown as Client)?.isInTransaction ?? false;
    throw error;
  } finally {
    client.release(isBroken);
  }
}

async function inTransaction<C extends TransactionClient, T>(client: C, fn: (client: C) => T | Promise<T>): Promise<T> {
  const line = lineOfClient(client);
  const queries: Queries = client;
  // An empty query makes the server tell whether a transaction is open.
  if (!line.knowsStatus) await queries.query('');
  if (line.isInTransaction) {
    line.coversAll = true;
    return await fn(client);
  }
  await queries.query('begin');
  line.coversAll = true;
  let result: T;
  try {
    result = await fn(client);
  } catch (error) {
    await queries.query('rollback').catch(() => {});
    throw error;
  }
  const { command } = await queries.query('commit');
  if (command === 'ROLLBACK') throw new Error('the transaction was rolled back, because one of its statements failed');
  return result;
}

function lineOfClient(client: TransactionClient): Line {
  const line = lineOf(client as unknown as Client);
  if (line === undefined) throw new TypeError('the client is not attributed: call attribute() with its class or pool');
  return line;
}
