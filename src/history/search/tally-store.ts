import type pg from 'pg';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { statementsOf } from '../../postgres/statements.ts';
import type { Place } from '../entries/entry-store.ts';
import type { Interval } from './plan/tally-plan.ts';

export interface TalliedPage {
  /** Milliseconds since 1970. */
  now: number;
  /** Newest first. */
  intervals: readonly Interval[];
  skip: number;
  size: number;
}

const parameters = '$1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::xid8, $11, $12';
/** Built once: the driver compares it each time with the text that the server has prepared. */
const talliedPage = `select page from change_page(${parameters})`;

/** The statement that reads a page with its exact total. `names`: what change_snapshot takes of them. */
export function talliedPageStatement(tenant: string, page: TalliedPage, names: readonly unknown[]): pg.QueryConfig {
  return { name: 'tallied page', text: talliedPage, values: [...columnsOf(tenant, page), ...names] };
}

/** Reads the total and the places of a page in a transaction. The plan has all names of the transaction's snapshot. */
export async function readTalliedPlaces(
  transaction: DatabaseTransaction,
  tenant: string,
  page: TalliedPage,
): Promise<{ total: number; places: Place[] }> {
  const { rows } = await statementsOf(transaction).query<{ total: number } & Place>({
    text: `select total, at, sequence from change_read(${parameters})`,
    values: [...columnsOf(tenant, page), null, null, null],
  });
  return { total: rows[0]?.total ?? 0, places: rows.slice(1).map(({ at, sequence }) => ({ at, sequence })) };
}

/**
 * The arrays that change_read takes, as texts: the selections of all intervals in one list, their ids as array texts.
 * The driver would take longer to write them, since it does not know that all elements are numbers.
 */
function columnsOf(tenant: string, { now, intervals, skip, size }: TalliedPage): unknown[] {
  let [sinces, befores, ends, actorSets, kindSets] = ['', '', '', '', ''];
  let ended = 0;
  for (const { since, before, selections } of intervals) {
    sinces += `,${since}`;
    befores += `,${before ?? 'null'}`;
    for (const { actors, kinds } of selections) {
      actorSets += `,"{${actors?.join(',') ?? '0'}}"`;
      kindSets += `,"{${kinds?.join(',') ?? (actors === null ? '0' : '')}}"`;
    }
    ended += selections.length;
    ends += `,${ended}`;
  }
  const arrays = [sinces, befores, ends, actorSets, kindSets].map((elements) => `{${elements.slice(1)}}`);
  return [tenant, now, ...arrays, skip, size];
}
