import { sql } from 'kysely';
import type { Connection } from '../../../postgres/database.ts';
import type { Receipt } from '../../../recording/receipt-store.ts';
import { parseReceipt } from '../verify/receipts.ts';

/** The bodies of the receipts at some positions, both included, with their positions. */
export async function readReceiptsBetween(
  db: Connection,
  tenant: string,
  from: number,
  to: number,
): Promise<[number, string][]> {
  const { rows } = await sql<{ position: number; body: string }>`
    select position, body from change_receipt
      where tenant = ${tenant} and position between ${from}::bigint and ${to}::bigint order by position`.execute(db);
  return rows.map(({ position, body }) => [position, body]);
}

/** A receipt as people read it. */
export interface ToldReceipt {
  readonly position: number;
  readonly what: string;
  readonly at: string;
  readonly by: string;
  readonly reason?: string;
  /** How many positions are concerned. */
  readonly changes: number;
}

/** The newest receipts of the tenant, newest first. */
export async function readNewestReceipts(db: Connection, tenant: string, limit: number): Promise<ToldReceipt[]> {
  const { rows } = await sql<{ position: number; body: string }>`
    select position, body from change_receipt
      where tenant = ${tenant} order by position desc limit ${limit}::integer`.execute(db);
  return rows.flatMap(({ position, body }) => {
    // One that somebody made up may be anything.
    const known = parseReceipt(position, body);
    if (known === undefined) return [];
    const { at, by, reason } = JSON.parse(body) as Receipt;
    const changes = known.ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
    return [
      {
        position,
        what: known.what,
        at: String(at),
        by: String(by),
        ...(reason && { reason: String(reason) }),
        changes,
      },
    ];
  });
}
