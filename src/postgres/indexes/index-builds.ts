import { type RawBuilder, type SqlBool, sql } from 'kysely';

/**
 * SQL that is true while a connection builds an index with `create index concurrently`. Both arguments are SQL: the OID of
 * the index, and its name. In a cluster the coordinator builds its own part at once and then waits for the workers. It
 * shows no progress then, and the index counts as invalid. So the statement itself tells that the build goes on.
 */
export function isBeingBuilt(index: RawBuilder<unknown>, name: RawBuilder<unknown>): RawBuilder<SqlBool> {
  return sql`(exists (select from pg_stat_progress_create_index p where p.index_relid = ${index})
    or exists (select from pg_stat_activity a
                 where a.datname = current_database() and a.pid <> pg_backend_pid() and a.state = 'active'
                   and a.query ilike '%create index concurrently%' and strpos(a.query, ${name}::text) > 0))`;
}
