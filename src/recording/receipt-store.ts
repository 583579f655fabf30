import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../postgres/database.ts';

/** A range of positions, inclusive. */
export type PositionRange = readonly [from: number, to: number];

/** An operation on a tenant's history other than recording. */
export interface Receipt {
  readonly what: 'erasure' | 'retention' | 'hold' | 'release' | 'first sealing' | 'new key' | 'restore';
  /** The positions concerned, in order. */
  readonly positions: readonly PositionRange[];
  /** ISO 8601. */
  readonly at: string;
  readonly by: 'operator' | 'annals';
  /** From a fixed list, since a receipt can never be erased. */
  readonly reason?: string;
  /** Bounded, and without personal data. */
  readonly [more: string]: unknown;
}

interface WrittenReceipt {
  readonly position: number;
  /** JSON text in one line. */
  readonly body: string;
}

/** Ranges per receipt: at most 52,500 of the 60,000 bytes that a body may have. */
const maxRanges = 1_500;

/**
 * Writes a receipt, or several if it has many ranges, and returns their positions. No entry of the tenant gets a
 * position until the transaction, which must be read committed, has ended.
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

/** Receipts after a position, in order. */
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

/** The ranges of positions in ascending order. */
export function rangesOf(positions: readonly number[]): PositionRange[] {
  const ranges: [number, number][] = [];
  for (const position of positions) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === position - 1) last[1] = position;
    else ranges.push([position, position]);
  }
  return ranges;
}
