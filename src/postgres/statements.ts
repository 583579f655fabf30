import { CompiledQuery } from 'kysely';
import type pg from 'pg';
import type { DatabaseTransaction } from './database.ts';

/** Runs statements, one at a time: a pool, a connection, or a transaction by `statementsOf`. */
export interface Statements {
  query<Row extends pg.QueryResultRow>(statement: pg.QueryConfig): Promise<{ rows: Row[] }>;
}

/** Connections, such as those of a pool. */
export interface Connections extends Statements {
  connect(): Promise<Statements & { release(error?: Error): void }>;
}

/**
 * Runs a statement that changes data. `onSent` is called once the statement is with the connection: from then on the
 * server runs it even if this process dies.
 */
export async function runSent(pool: Connections, statement: pg.QueryConfig, onSent: () => void): Promise<void> {
  const connection = await pool.connect();
  try {
    const run = connection.query(statement);
    onSent();
    await run;
    connection.release();
  } catch (error) {
    connection.release(error instanceof Error ? error : new Error('a statement failed'));
    throw error;
  }
}

/** The statements of one transaction. */
export function statementsOf(transaction: DatabaseTransaction): Statements {
  return {
    async query<Row extends pg.QueryResultRow>({ text, values = [] }: pg.QueryConfig): Promise<{ rows: Row[] }> {
      return await transaction.executeQuery<Row>(CompiledQuery.raw(text, values));
    },
  };
}
