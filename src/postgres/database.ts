import { Kysely, PostgresDialect, type PostgresPool, type Transaction } from 'kysely';
import type { Tables } from './tables.ts';

export type Database = Kysely<Tables>;
export type DatabaseTransaction = Transaction<Tables>;
/** What runs a statement: the pool, or the transaction of the statement. */
export type Connection = Database | DatabaseTransaction;

/** The typed query builder on a pool. Its destroy method ends the pool. */
export function createDatabase(pool: PostgresPool): Database {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}
