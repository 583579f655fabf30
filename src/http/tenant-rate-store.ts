import { sql } from 'kysely';
import type { Database } from '../postgres/database.ts';
import type { TakePortion } from './tenant-rate.ts';

/** Takes portions from the buckets in the database, which all processes share. `rate` is in requests a second. */
export function createTakePortion(db: Database, rate: number): TakePortion {
  return async (tenant, portion) => {
    const { rows } = await sql<{ granted: number; seconds: number }>`
      select granted, seconds from tenant_rate_take(${tenant}, ${rate}::double precision, ${portion}::integer)
    `.execute(db);
    const [row] = rows;
    if (row === undefined) throw new Error('tenant_rate_take gave no row');
    return row;
  };
}
