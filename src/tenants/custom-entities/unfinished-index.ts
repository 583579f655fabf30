import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import { isBeingBuilt } from '../../postgres/indexes/build-index.ts';

/**
 * Finds an index. One that another process is building counts as present. Drops an invalid one, which is useless and
 * blocks a new build.
 */
export async function dropUnfinished(db: Database, name: string): Promise<'there' | 'being made' | 'missing'> {
  const { rows } = await sql<{ valid: boolean; beingMade: boolean }>`
    select i.indisvalid as valid,
        ${isBeingBuilt(sql`i.indexrelid`, sql`c.relname`)} as "beingMade"
      from pg_index i join pg_class c on c.oid = i.indexrelid
      where c.relname = ${name} and c.relnamespace = current_schema()::regnamespace`.execute(db);
  const [index] = rows;
  if (index === undefined) return 'missing';
  if (index.valid) return 'there';
  if (index.beingMade) return 'being made';
  await sql`drop index concurrently if exists ${sql.ref(name)}`.execute(db);
  return 'missing';
}
