import type { Database } from '../../db/database.ts';
import type { Statements } from '../../db/statements.ts';
import type { Query } from '../../query/ast.ts';
import type { RegexMatcherPool } from '../../query/regex-pool.ts';

/** One page of one query. Times are milliseconds since 1970. */
export interface PageQuery {
  readonly tenant: string;
  readonly query: Query;
  /** The first moment of the window. */
  readonly from: number;
  readonly now: number;
  readonly skip: number;
  readonly size: number;
  /** Whether a page with much text may come as `pieces`. */
  readonly inPieces: boolean;
  /** Whether entries come with their circumstances. */
  readonly withContext: boolean;
}

/** What a read of a page needs. */
export interface Reading {
  /** Runs one statement at a time. */
  readonly pool: Statements;
  readonly db: Database;
  readonly regexes: RegexMatcherPool;
}
