import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { ChangeType, Outcome } from '../../recording/change.ts';
import type { recordChange } from '../../recording/record-change.ts';
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

/** A change of a type or of an instance, as the function that writes it knows it. */
export interface WrittenChange {
  readonly type: ChangeType;
  readonly entityId: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The name that the change entry shows. */
  readonly name: string | undefined;
  /** JSON texts; a create has no `before`, and a delete no `after`. */
  readonly before?: string;
  readonly after?: string;
}
