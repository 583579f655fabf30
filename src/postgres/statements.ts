import { CompiledQuery } from 'kysely';
import type pg from 'pg';
import type { DatabaseTransaction } from './database.ts';

/** Runs statements, one at a time: a pool, a connection, or a transaction by `statementsOf`. */
export interface Statements {
  query<Row extends pg.QueryResultRow>(statement: pg.QueryConfig): Promise<{ rows: Row[] }>;
}

/** The statements of one transaction. */
export function statementsOf(transaction: DatabaseTransaction): Statements {
  return {
    async query<Row extends pg.QueryResultRow>({ text, values = [] }: pg.QueryConfig): Promise<{ rows: Row[] }> {
      return await transaction.executeQuery<Row>(CompiledQuery.raw(text, values));
    },
  };
}
