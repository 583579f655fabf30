import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Database } from '../database.ts';

/** An index that is built after the start, so that it does not block writers of a large table. */
interface LateIndex {
  readonly name: string;
  readonly table: string;
  /** The SQL after the name of the table: `(tenant, lower(name))`. */
  readonly definition: RawBuilder<unknown>;
}

/**
 * Builds an index concurrently if it does not exist, or again after an interrupted build. Does nothing while another
 * process builds an index on that table.
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

/**
 * SQL that is true while a connection builds an index with `create index concurrently`. Both arguments are SQL: the OID
 * of the index, and its name. In a cluster, the coordinator shows no progress while it waits for the workers, so its
 * running statement counts too.
 */
export function isBeingBuilt(index: RawBuilder<unknown>, name: RawBuilder<unknown>): RawBuilder<SqlBool> {
  return sql`(exists (select from pg_stat_progress_create_index p where p.index_relid = ${index})
    or exists (select from pg_stat_activity a
                 where a.datname = current_database() and a.pid <> pg_backend_pid() and a.state = 'active'
                   and a.query ilike '%create index concurrently%' and strpos(a.query, ${name}::text) > 0))`;
}

/** An index that Annals built in addition to those of the migrations. */
export interface MadeIndex {
  readonly name: string;
  /** The comment on the index; null if it has none. */
  readonly comment: string | null;
  /** Its size on disk, in bytes. */
  readonly bytes: number;
  /** `invalid` after an interrupted build: PostgreSQL does not use the index, and the next build replaces it. */
  readonly state: 'valid' | 'building' | 'invalid';
}

/** The indexes whose names match a pattern of LIKE, also incomplete ones. */
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
