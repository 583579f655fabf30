import { sql } from 'kysely';
import type { Connection } from '../../postgres/database.ts';
import type { PlaceOfPosition } from './positions.ts';

/** The receipts of erasures at these places, which follow each other: the JSON texts by position. */
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
