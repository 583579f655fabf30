import { type Kysely, sql } from 'kysely';
import type { Sealer } from '../core/sealing.ts';
import type { Database } from './database.ts';

/** A column with sealed values. Every module declares its own. */
export interface SealedColumn {
  table: string;
  column: string;
  /** The primary key. */
  keys: readonly string[];
  /** More columns that the value is bound to. */
  bound?: readonly string[];
  /** The purpose that the value of a row is bound to. */
  purposeOf(row: Readonly<Record<string, unknown>>): string;
}

export interface ResealCounts {
  /** Number of values sealed again with the first key. */
  resealed: number;
  /** Number of values that were sealed with the first key. */
  current: number;
  /** Number of values that no key opens, which stay unchanged. */
  unreadable: number;
}

const maxRows = 500;

/** Reseals values of other keys with the first key, beside concurrent writers. Idempotent. */
export async function resealColumn(db: Database, sealer: Sealer, sealed: SealedColumn): Promise<ResealCounts> {
  const counts: ResealCounts = { resealed: 0, current: 0, unreadable: 0 };
  const { table, column, keys, bound = [], purposeOf } = sealed;
  // The typed builder does not know a table whose name is a value.
  const untyped = db as unknown as Kysely<Record<string, Record<string, unknown>>>;
  const order = sql.join(keys.map((key) => sql.ref(key)));
  let after: readonly unknown[] | undefined;
  for (;;) {
    let page = untyped
      .selectFrom(table)
      .select([...keys, ...bound, column])
      .where(column, 'is not', null);
    if (after !== undefined) page = page.where(sql<boolean>`(${order}) > (${sql.join(after)})`);
    const rows = await page.orderBy(order).limit(maxRows).execute();
    for (const row of rows) counts[await resealRow(row)] += 1;
    const last = rows.at(-1);
    if (last === undefined || rows.length < maxRows) return counts;
    after = keys.map((key) => last[key]);
  }

  async function resealRow(row: Record<string, unknown>): Promise<keyof ResealCounts> {
    const value = row[column];
    if (!(value instanceof Uint8Array)) throw new Error(`${table}.${column} has a value that is not sealed`);
    if (sealer.isCurrent(value)) return 'current';
    const purpose = purposeOf(row);
    const plaintext = sealer.open(value, purpose);
    if (plaintext === undefined) return 'unreadable';
    let update = untyped.updateTable(table).set({ [column]: sealer.seal(plaintext, purpose) });
    for (const key of keys) update = update.where(key, '=', row[key]);
    // Unless another writer has replaced the value.
    await update.where(column, '=', value).execute();
    return 'resealed';
  }
}
