import { sql } from 'kysely';
import type { Database } from '../database.ts';

/** A table whose rows belong to tenants. */
export interface TenantTable {
  readonly name: string;
  /** The columns of its primary key besides `tenant`, in order. `type` is as SQL writes it. */
  readonly key: readonly { readonly name: string; readonly type: string }[];
}

interface FoundTable extends TenantTable {
  readonly references: readonly string[];
}

/**
 * Every table that has a column `tenant`, from the database's own catalogue, so that none can be forgotten. A table
 * stands before the tables that its rows refer to; `tenant` itself is the last one.
 */
export async function tenantTables(db: Database): Promise<TenantTable[]> {
  const { rows } = await sql<FoundTable>`
    with found as (
      select c.oid, c.relname as name
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped
        where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = current_schema()::regnamespace
    )
    select found.name,
        coalesce((
          select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod)) order by k.place)
            from pg_index i
            cross join unnest(i.indkey::int2[]) with ordinality as k (number, place)
            join pg_attribute a on a.attrelid = found.oid and a.attnum = k.number
            where i.indrelid = found.oid and i.indisprimary and a.attname <> 'tenant'), '[]') as key,
        coalesce((
          select json_agg(distinct parent.name)
            from pg_constraint f join found parent on parent.oid = f.confrelid
            where f.contype = 'f' and f.conrelid = found.oid and f.confrelid <> found.oid), '[]') as references
      from found order by found.name`.execute(db);
  const left = [...rows];
  const ordered: TenantTable[] = [];
  while (left.length > 0) {
    const isFree = ({ name }: FoundTable) =>
      left.every((other) => other.name === name || !other.references.includes(name));
    const next = left.findIndex((one) => isFree(one) && (one.name !== 'tenant' || left.length === 1));
    const [table] = left.splice(next, 1);
    if (next === -1 || table === undefined) throw new Error('tables of tenants refer to each other in a circle');
    ordered.push({ name: table.name, key: table.key });
  }
  return ordered;
}
