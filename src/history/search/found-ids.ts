import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { FoundIds } from './plan/expression.ts';

/**
 * If `work_mem` is PostgreSQL's 4 MB, a hash table has no memory for more hashes than this. The query then uses a binary
 * search.
 */
const maxHashed = 200_000;

/** The condition that a hash is one of those that a regular expression found. */
export function isFound({ isIn, count, hashes }: FoundIds, hash: RawBuilder<unknown>): RawBuilder<SqlBool> {
  if (count === 0) return isIn ? sql`false` : sql`true`;
  const isTold =
    count <= maxHashed
      ? sql`${hash} in (select unnest(${hashes}::uuid[]))`
      : sql`exists (
          select from (select (select array_agg(one order by one) from unnest(${hashes}::uuid[]) as one)) as told (hashes)
            where told.hashes[width_bucket(${hash}, told.hashes)] = ${hash})`;
  return isIn ? sql`${isTold}` : sql`not ${isTold}`;
}
