import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../database.ts';
import { isBeingBuilt } from './index-builds.ts';

/** An index that Annals builds after the start, so that writers of a large table do not wait for it. */
export interface LateIndex {
  readonly name: string;
  readonly table: string;
  /** The SQL after the name of the table: `(tenant, lower(name))`. */
  readonly definition: RawBuilder<unknown>;
}

/**
 * Builds an index if it does not exist, while others read and write. If a build broke off, it builds the index again.
 * Does nothing while another process builds an index on that table. PostgreSQL's planner uses the index from then on.
 *
 * @example
 * await buildIndex(db, { name: 'job_tenant', table: 'job', definition: sql`(tenant, id)` });
 */
export async function buildIndex(db: Database, { name, table, definition }: LateIndex): Promise<void> {
  const { rows } = await sql<{ valid: boolean; building: boolean }>`
    select coalesce((select i.indisvalid from pg_index i where i.indexrelid = to_regclass(${name})), false) as valid,
           exists (select from pg_stat_progress_create_index p where p.relid = to_regclass(${table}))
             or ${isBeingBuilt(sql`to_regclass(${name})`, sql`${name}`)} as building`.execute(db);
  const [state] = rows;
  if (state === undefined || state.valid || state.building) return;
  await sql`drop index concurrently if exists ${sql.id(name)}`.execute(db);
  await sql`create index concurrently if not exists ${sql.id(name)} on ${sql.id(table)} ${definition}`.execute(db);
  // Without statistics of its expressions, the planner may not use the index.
  if (await hasExpressions(db, name)) await sql`analyze ${sql.id(table)}`.execute(db);
}

async function hasExpressions(db: Database, name: string): Promise<boolean> {
  const { rows } = await sql`
    select from pg_index i where i.indexrelid = to_regclass(${name}) and i.indexprs is not null`.execute(db);
  return rows.length > 0;
}
