import type { Database } from '../../postgres/database.ts';
import type { SchemaChecker } from './schema-checker.ts';

/** What the functions that write types and instances need. */
export interface WriteContext {
  readonly db: Database;
  readonly schemas: Pick<SchemaChecker, 'checkSchema' | 'checkDocument'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The outcome of a PUT. */
export type Put = 'created' | 'replaced';
