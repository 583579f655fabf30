import { sql } from 'kysely';
import type { Database } from '../db/database.ts';

/**
 * What there is of an index: one that is being made by another process counts as there. One whose making was interrupted is of
 * no use and in the way: it is dropped.
 */
export async function dropUnfinished(db: Database, name: string): Promise<'there' | 'being made' | 'missing'> {
  const { rows } = await sql<{ valid: boolean; beingMade: boolean }>`
    select i.indisvalid as valid,
        exists (select from pg_stat_progress_create_index p where p.index_relid = i.indexrelid) as "beingMade"
      from pg_index i join pg_class c on c.oid = i.indexrelid
      where c.relname = ${name} and c.relnamespace = current_schema()::regnamespace`.execute(db);
  const [index] = rows;
  if (index === undefined) return 'missing';
  if (index.valid) return 'there';
  if (index.beingMade) return 'being made';
  await sql`drop index concurrently if exists ${sql.ref(name)}`.execute(db);
  return 'missing';
}
