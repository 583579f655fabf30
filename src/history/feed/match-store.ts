import { sql } from 'kysely';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import type { Connection } from '../../postgres/database.ts';
import { statementsOf } from '../../postgres/statements.ts';
import type { Query } from '../../query/ast.ts';
import type { RegexMatcherPool } from '../../query/regex-pool.ts';
import type { PlaceOfPosition } from '../../recording/positions.ts';
import { type EntryRow, type Place, readEntries, readLengths } from '../entries/entry-store.ts';
import { timeBounds } from '../search/plan/window.ts';
import { entryConditions } from '../search/predicate.ts';
import { rowsAt } from '../search/search-store.ts';
import { type HistorySnapshot, resolveInTransaction } from '../search/snapshot.ts';

/** The first places whose entries satisfy a query, `maxItems` at most. */
export async function findMatches<Of extends Place>(
  { transaction, horizon, dictionary }: HistorySnapshot,
  { tenant, query, regexes }: { tenant: string; query: Query; regexes: RegexMatcherPool },
  places: readonly Of[],
  maxItems: number,
): Promise<Of[]> {
  const slice = new TimeSlice();
  const scope = { tenant, since: horizon, places, dictionary, regexes, slice };
  const expression = await resolveInTransaction(transaction, query, scope);
  const satisfies = await entryConditions(tenant, expression, dictionary, slice);
  const since = Math.max(horizon, timeBounds(expression).from);
  const { rows } = await sql<{ ordinal: number }>`
    select place.ordinal from ${rowsAt(places, tenant, 'e')}
      where e.tenant = ${tenant} and e.at >= ${since} and ${satisfies(expression)}
      order by place.ordinal limit ${maxItems}`.execute(transaction);
  return rows.flatMap(({ ordinal }) => places[ordinal - 1] ?? []);
}

interface EntryLimits {
  readonly maxBytes: number;
  /** So many entries, whatever their length. */
  readonly atLeast: number;
  readonly withContext: boolean;
}

/** The entries of the first places whose texts have `maxBytes` bytes together at most. All places have an entry. */
export async function readFitting(
  { transaction }: HistorySnapshot,
  tenant: string,
  places: readonly Place[],
  { maxBytes, atLeast, withContext }: EntryLimits,
): Promise<EntryRow[]> {
  if (places.length === 0) return [];
  const statements = statementsOf(transaction);
  const options = { withContext, withIdentity: true };
  const all = await readEntries(statements, tenant, places, { ...options, maxBytes });
  if (all !== undefined) return all;
  let room = maxBytes;
  const lengths = await readLengths(statements, tenant, places);
  const tooLong = lengths.findIndex((bytes) => {
    room -= bytes;
    return room < 0;
  });
  const fitting = places.slice(0, Math.max(atLeast, tooLong));
  return (await readEntries(statements, tenant, fitting, options)) ?? [];
}

/** The receipts of erasures at these consecutive places: JSON texts by position. */
export async function findErasures(
  db: Connection,
  tenant: string,
  places: readonly PlaceOfPosition[],
): Promise<Map<number, string>> {
  const [first, last] = [places[0]?.position ?? 0, places.at(-1)?.position ?? 0];
  if (!places.some(({ at }) => at < 0)) return new Map();
  const { rows } = await sql<{ position: number; body: string }>`
    select position, body from change_receipt
      where tenant = ${tenant} and position between ${first}::bigint and ${last}::bigint
        and body::json ->> 'what' = 'erasure'
      order by position`.execute(db);
  return new Map(rows.map(({ position, body }) => [position, body]));
}
