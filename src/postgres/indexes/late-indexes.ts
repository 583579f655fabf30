import { sql } from 'kysely';
import type { Database } from '../database.ts';
import { isBeingBuilt } from './index-builds.ts';

/** An index that Annals builds while it runs, apart from those of the migrations. */
export interface MadeIndex {
  readonly name: string;
  /** The comment on the index; null if it has none. */
  readonly comment: string | null;
  /** Its size on disk, in bytes. */
  readonly bytes: number;
  /** The build of an invalid index broke off. PostgreSQL does not use it, and the next build replaces it. */
  readonly state: 'valid' | 'building' | 'invalid';
}

/** The indexes whose names are like a pattern of LIKE, with those that are not complete. */
export async function madeIndexes(db: Database, pattern: string): Promise<MadeIndex[]> {
  const { rows } = await sql<MadeIndex>`
    select c.relname as name, obj_description(c.oid) as comment, index_bytes(c.oid) as bytes,
        case when i.indisvalid then 'valid'
             when ${isBeingBuilt(sql`c.oid`, sql`c.relname`)} then 'building'
             else 'invalid' end as state
      from pg_index i join pg_class c on c.oid = i.indexrelid
      where c.relnamespace = current_schema()::regnamespace and c.relname like ${pattern}
      order by name`.execute(db);
  return rows;
}
