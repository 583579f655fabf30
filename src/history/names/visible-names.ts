import { sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';

/** Of these actors, or kinds, those that have an entry since a moment. */
export async function findVisible(
  transaction: DatabaseTransaction,
  tenant: string,
  of: 'actor' | 'kind',
  { ids, since }: { ids: readonly number[]; since: number },
): Promise<ReadonlySet<number>> {
  if (ids.length === 0) return new Set();
  // Each is one step in an index, in the order that only that index has.
  const { rows } = await sql<{ id: number }>`
    select of.id
      from unnest(${ids}::bigint[]) as of (id)
      cross join lateral (
        select from change_entry e
          where e.tenant = ${tenant} and ${sql.ref(`e.${of}`)} = of.id and e.at >= ${since}
          order by e.at, e.sequence limit 1
      ) as one`.execute(transaction);
  return new Set(rows.map(({ id }) => id));
}
