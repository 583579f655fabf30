import type { Database, DatabaseTransaction } from '../db/database.ts';
import type { Outcome } from '../recording/change.ts';
import type { recordChange } from '../recording/record-change.ts';
import type { SchemaChecker } from './schema-checker.ts';

/** What the functions that write types and instances need. */
export interface WriteContext {
  readonly db: Database;
  readonly schemas: Pick<SchemaChecker, 'checkSchema' | 'checkDocument'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly record: (
    transaction: DatabaseTransaction,
    tenant: string,
    change: Parameters<typeof recordChange>[2],
    now: number,
  ) => Promise<Outcome>;
}

/** The outcome of a PUT. */
export type Put = 'created' | 'replaced';
