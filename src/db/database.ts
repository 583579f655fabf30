import { Kysely, PostgresDialect, type PostgresPool, type Transaction } from 'kysely';
import type { Tables } from './tables.ts';

export type Database = Kysely<Tables>;
export type DatabaseTransaction = Transaction<Tables>;
/** What takes a statement: the pool, or the transaction that it belongs to. */
export type Connection = Database | DatabaseTransaction;

/** The typed query builder on a pool; to destroy it ends the pool. */
export function createDatabase(pool: PostgresPool): Database {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}
