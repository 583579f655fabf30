import { type Kysely, sql } from 'kysely';
import type { Sealer } from '../sealing.ts';
import type { Database } from './database.ts';

/** A column in which a room keeps what it has sealed. Every room that seals declares its own. */
export interface SealedColumn {
  table: string;
  column: string;
  /** The primary key. */
  keys: readonly string[];
  /** Further columns that the value is bound to. */
  bound?: readonly string[];
  /** What the value of that row is bound to. */
  purposeOf(row: Readonly<Record<string, unknown>>): string;
}

export interface ResealCounts {
  /** Sealed anew with the first key. */
  resealed: number;
  /** Sealed with the first key before. */
  current: number;
  /** Opened by none of the keys, and left as they are. */
  unreadable: number;
}

const rowsAtOnce = 500;

/** Seals with the first key whatever another key has sealed. Writers may go on meanwhile; again is no error. */
export async function resealColumn(db: Database, sealer: Sealer, sealed: SealedColumn): Promise<ResealCounts> {
  const counts: ResealCounts = { resealed: 0, current: 0, unreadable: 0 };
  const { table, column, keys, bound = [], purposeOf } = sealed;
  // Tables that are named by a value are outside of what the typed builder knows.
  const untyped = db as unknown as Kysely<Record<string, Record<string, unknown>>>;
  const order = sql.join(keys.map((key) => sql.ref(key)));
  let after: readonly unknown[] | undefined;
  for (;;) {
    let page = untyped
      .selectFrom(table)
      .select([...keys, ...bound, column])
      .where(column, 'is not', null);
    if (after !== undefined) page = page.where(sql<boolean>`(${order}) > (${sql.join(after)})`);
    const rows = await page.orderBy(order).limit(rowsAtOnce).execute();
    for (const row of rows) counts[await resealRow(row)] += 1;
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsAtOnce) return counts;
    after = keys.map((key) => last[key]);
  }

  async function resealRow(row: Record<string, unknown>): Promise<keyof ResealCounts> {
    const value = row[column];
    if (!(value instanceof Uint8Array)) throw new Error(`${table}.${column} holds something that is not sealed`);
    if (sealer.isCurrent(value)) return 'current';
    const purpose = purposeOf(row);
    const plaintext = sealer.open(value, purpose);
    if (plaintext === undefined) return 'unreadable';
    let update = untyped.updateTable(table).set({ [column]: sealer.seal(plaintext, purpose) });
    for (const key of keys) update = update.where(key, '=', row[key]);
    // Somebody who has written it meanwhile has sealed it anew, too.
    await update.where(column, '=', value).execute();
    return 'resealed';
  }
}
