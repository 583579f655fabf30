import { type RawBuilder, sql } from 'kysely';
import type { Database } from './database.ts';

/** An index that is built after the start, since writers of a large table must not wait for it. */
export interface LateIndex {
  readonly name: string;
  readonly table: string;
  /** What stands after the name of the table: `(tenant, lower(name))`. */
  readonly definition: RawBuilder<unknown>;
}

/**
 * Builds an index unless it is there, while others read and write. An index whose build broke off is built anew. Does nothing
 * while another process builds one on that table. Statements use the index from then on, since PostgreSQL's planner finds it.
 *
 * @example
 * await buildIndex(db, { name: 'job_tenant', table: 'job', definition: sql`(tenant, id)` });
 */
export async function buildIndex(db: Database, { name, table, definition }: LateIndex): Promise<void> {
  const { rows } = await sql<{ valid: boolean; building: boolean }>`
    select coalesce((select i.indisvalid from pg_index i where i.indexrelid = to_regclass(${name})), false) as valid,
           exists (select from pg_stat_progress_create_index p where p.relid = to_regclass(${table})) as building`.execute(
    db,
  );
  const [state] = rows;
  if (state === undefined || state.valid || state.building) return;
  await sql`drop index concurrently if exists ${sql.id(name)}`.execute(db);
  await sql`create index concurrently if not exists ${sql.id(name)} on ${sql.id(table)} ${definition}`.execute(db);
  // Without statistics of its expressions the planner may not take it.
  await sql`analyze ${sql.id(table)}`.execute(db);
}
