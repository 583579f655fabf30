import { sql } from 'kysely';
import type { Connection } from '../../../postgres/database.ts';

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
