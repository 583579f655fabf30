import type pg from 'pg';
import type { Semaphore } from '../../concurrency/semaphore.ts';
import type { Database } from '../../db/database.ts';
import type { Statements } from '../../db/statements.ts';
import type { Query } from '../../query/ast.ts';
import type { RegexMatcherPool } from '../../query/regex-pool.ts';
import type { StopSignal } from '../../stop-signal.ts';

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
}

/** What reading a page works with. */
export interface Reading {
  readonly pool: pg.Pool;
  readonly db: Database;
  /** Runs one statement; cancels it when the signal is aborted. */
  readonly statements: Statements;
  readonly regexes: RegexMatcherPool;
  /** Places for queries of several statements. */
  readonly semaphore: Semaphore;
  readonly signal: StopSignal;
  /** Milliseconds. */
  readonly timeLimit: number;
}
