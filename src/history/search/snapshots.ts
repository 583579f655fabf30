import { TimeSlice } from '../../core/concurrency/time-slice.ts';
import type { Restriction } from '../../http/restriction.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { Statements } from '../../postgres/statements.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { Query } from '../../query/ast.ts';
import { withPlainRegexes } from '../../query/plain-regex.ts';
import type { RegexMatcherPool } from '../../query/regex-pool.ts';
import type { Dictionary, Kind } from './names/dictionary.ts';
import type { Expression } from './plan/expression.ts';
import { joined } from './plan/restriction.ts';
import { type TimeBounds, timeBounds, windowFrom } from './plan/window.ts';
import { openSnapshot, resolveInTransaction } from './snapshot.ts';

/** A query at a moment. Times are milliseconds since 1970. */
export interface QueryAtMoment {
  readonly tenant: string;
  /** With the query of a restriction. */
  readonly query: Query;
  /** The query of the restriction alone. */
  readonly within?: Query | undefined;
  /** The first moment of the window. */
  readonly from: number;
  /** The times that the caller's own query leaves. */
  readonly bounds: TimeBounds;
  readonly now: number;
}

/** What a read of the history needs. */
export interface Reading {
  /** Runs one statement at a time. */
  readonly pool: Statements;
  readonly db: Database;
  readonly regexes: RegexMatcherPool;
}

/** A query in one snapshot of the database, with the names of that snapshot. */
export interface QuerySnapshot {
  readonly tenant: string;
  readonly transaction: DatabaseTransaction;
  readonly expression: Expression;
  readonly dictionary: Dictionary;
  /** The first moment that the tenant still has and that the window and the query's own times leave. */
  readonly since: number;
  /** The window with the times of the caller's own query: what a restriction leaves of it is not told. */
  readonly asked: TimeBounds;
  readonly now: number;
  readonly slice: TimeSlice;
}

/**
 * The query with its window. This is the one place where a restriction joins a query. The caller's own query alone decides
 * the window.
 */
export function queryAt(tenant: string, asked: Query, now: number, restriction?: Restriction): QueryAtMoment {
  const own = withPlainRegexes(asked);
  const query = restriction === undefined ? own : joined(restriction, own);
  return { tenant, query, within: restriction?.query, from: windowFrom(own, now), bounds: timeBounds(own), now };
}

/** One snapshot of a tenant's history, with its names. */
export interface HistorySnapshot {
  readonly transaction: DatabaseTransaction;
  /** The first moment that the tenant still has. */
  readonly horizon: number;
  readonly dictionary: Dictionary;
  /** Whether the caller sees the entries of an entity type; undefined: those of each type. */
  readonly shows?: (entity: string) => boolean;
}

/** The kinds of an entity type, or of all, whose entries the caller sees. Undefined: every kind there is. */
export function kindsShown(
  { dictionary, shows }: HistorySnapshot,
  entity: string | undefined,
): readonly Kind[] | undefined {
  if (entity === undefined && shows === undefined) return undefined;
  return dictionary.kinds.filter(
    (kind) => (entity === undefined || kind.entity === entity) && (shows === undefined || shows(kind.entity)),
  );
}

/** Runs work in a repeatable read transaction, so that all its statements see the same entries and names. */
export async function inHistorySnapshot<Result>(
  { db }: Pick<Reading, 'db'>,
  { tenant, now }: Pick<QueryAtMoment, 'tenant' | 'now'>,
  known: Dictionary,
  work: (snapshot: HistorySnapshot) => Promise<Result>,
): Promise<Result> {
  return await inTransaction(
    db,
    async (transaction) => await work({ transaction, ...(await openSnapshot(transaction, tenant, now, known)) }),
    { isolation: 'repeatable read' },
  );
}

/** Runs the work of a query in such a snapshot. */
export async function inQuerySnapshot<Result>(
  reading: Reading,
  { tenant, query, within, from, bounds, now }: QueryAtMoment,
  known: Dictionary,
  work: (snapshot: QuerySnapshot) => Promise<Result>,
): Promise<Result> {
  return await inHistorySnapshot(reading, { tenant, now }, known, async ({ transaction, horizon, dictionary }) => {
    const { regexes } = reading;
    const kept = Math.max(from, horizon);
    const slice = new TimeSlice();
    const means = { tenant, since: kept, within, dictionary, regexes, slice };
    const expression = await resolveInTransaction(transaction, query, means);
    const since = Math.max(kept, timeBounds(expression).from);
    const asked = { from: Math.max(kept, bounds.from), to: bounds.to };
    return await work({ tenant, transaction, expression, dictionary, since, asked, now, slice });
  });
}
