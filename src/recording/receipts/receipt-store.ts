import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';

/** From one position to another, both included. */
export type PositionRange = readonly [from: number, to: number];

/** What was done with a tenant's history besides recording it. */
export interface Receipt {
  readonly what: 'erasure' | 'retention' | 'hold' | 'release' | 'first sealing' | 'new key' | 'restore';
  /** The positions concerned, in order. */
  readonly positions: readonly PositionRange[];
  /** ISO 8601. */
  readonly at: string;
  readonly by: 'operator' | 'annals';
  /** Out of a list, since a receipt can never be erased. */
  readonly reason?: string;
  /** Members of its own, bounded, and nothing about a person. */
  readonly [more: string]: unknown;
}

export interface WrittenReceipt {
  readonly position: number;
  /** JSON text in one line. */
  readonly body: string;
}

/** Ranges of one receipt: 52,500 bytes at most, of the 60,000 that a body may have. */
const maxRanges = 1_500;

/**
 * Writes a receipt, or several where it has many ranges, and returns their positions. No entry of the tenant gets a position until the
 * transaction, which is read committed, has ended.
 */
export async function writeReceipt(
  transaction: DatabaseTransaction,
  tenant: string,
  receipt: Receipt,
): Promise<number[]> {
  const written: number[] = [];
  let next = 0;
  do {
    const body = JSON.stringify({ ...receipt, positions: receipt.positions.slice(next, next + maxRanges) });
    const { rows } = await sql<{ position: number }>`
      select receipt_write(${tenant}, ${body}) as position`.execute(transaction);
    written.push(...rows.map(({ position }) => position));
    next += maxRanges;
  } while (next < receipt.positions.length);
  return written;
}

/** Receipts behind a position, in order. */
export async function readReceipts(
  db: Database,
  tenant: string,
  { after = 0, limit }: { after?: number; limit: number },
): Promise<WrittenReceipt[]> {
  const { rows } = await sql<WrittenReceipt>`
    select position, body from change_receipt
      where tenant = ${tenant} and position > ${after}::bigint order by position limit ${limit}::integer`.execute(db);
  return rows;
}

/** The ranges of positions that are in ascending order. */
export function rangesOf(positions: readonly number[]): PositionRange[] {
  const ranges: [number, number][] = [];
  for (const position of positions) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === position - 1) last[1] = position;
    else ranges.push([position, position]);
  }
  return ranges;
}
