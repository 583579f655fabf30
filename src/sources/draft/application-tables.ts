import type pg from 'pg';
import type { TableName } from '../../postgres/source/source-catalogue.ts';

/** A table of the application, or the root of its partitions. */
export interface ApplicationTable extends TableName {
  readonly oid: string;
  readonly isPartitioned: boolean;
  /** It has no WAL. */
  readonly isUnlogged: boolean;
  /** The extension that it belongs to. */
  readonly extension: string | null;
  readonly columns: readonly ApplicationColumn[];
  /** The primary key, then unique indexes over not-null columns, those of fewer columns first. */
  readonly keys: readonly { readonly isPrimary: boolean; readonly columns: readonly string[] }[];
  readonly foreignKeys: readonly ForeignKey[];
}

export interface ApplicationColumn {
  readonly name: string;
  /** The type's name; a domain's base. */
  readonly type: string;
  /** `pg_type.typcategory`: `S` text, `D` dates and times, `N` numbers. */
  readonly category: string;
  readonly isGenerated: boolean;
}

interface ForeignKey {
  /** The OID of the table that it references. */
  readonly table: string;
  readonly columns: readonly string[];
  /** The referenced columns, in the same order. */
  readonly references: readonly string[];
}

/** Reads all tables except PostgreSQL's and Annals' own, by name, `public` first. */
export async function readApplicationTables(client: pg.Client): Promise<ApplicationTable[]> {
  const { rows } = await client.query<{ found: string }>(tablesStatement);
  return rows.map(({ found }): ApplicationTable => JSON.parse(found));
}

// As JSON, since connections to a source leave values as text.
const tablesStatement = `
select jsonb_build_object(
         'oid', c.oid::text, 'schema', n.nspname, 'name', c.relname, 'isPartitioned', c.relkind = 'p',
         'isUnlogged', c.relpersistence = 'u',
         'extension', (select e.extname from pg_catalog.pg_depend d join pg_catalog.pg_extension e on e.oid = d.refobjid
                        where d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
                          and d.refclassid = 'pg_catalog.pg_extension'::regclass limit 1),
         'columns', (select coalesce(jsonb_agg(jsonb_build_object(
                              'name', a.attname, 'type', coalesce(b.typname, t.typname), 'category', t.typcategory,
                              'isGenerated', a.attgenerated <> '') order by a.attnum), '[]')
                       from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
                       left join pg_catalog.pg_type b on b.oid = t.typbasetype
                      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
         'keys', (select coalesce(jsonb_agg(jsonb_build_object('isPrimary', i.indisprimary, 'columns', k.columns)
                                            order by i.indisprimary desc, i.indnkeyatts, x.relname), '[]')
                    from pg_catalog.pg_index i join pg_catalog.pg_class x on x.oid = i.indexrelid
                    cross join lateral (
                      select jsonb_agg(a.attname order by u.place) as columns,
                             bool_and(a.attname is not null and a.attnotnull and a.attgenerated = '') as is_fit
                        from unnest(i.indkey::int2[]) with ordinality as u (attnum, place)
                        left join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = u.attnum and u.attnum > 0
                       where u.place <= i.indnkeyatts) as k
                   where i.indrelid = c.oid and i.indisunique and i.indpred is null and k.is_fit
                     and (i.indisprimary or (i.indimmediate and i.indisvalid))),
         'foreignKeys', (select coalesce(jsonb_agg(jsonb_build_object(
                                  'table', f.confrelid::text, 'columns', k.columns, 'references', k.targets) order by f.conname), '[]')
                           from pg_catalog.pg_constraint f
                           cross join lateral (
                             select jsonb_agg(a.attname order by u.place) as columns, jsonb_agg(b.attname order by u.place) as targets
                               from unnest(f.conkey, f.confkey) with ordinality as u (own, other, place)
                               join pg_catalog.pg_attribute a on a.attrelid = f.conrelid and a.attnum = u.own
                               join pg_catalog.pg_attribute b on b.attrelid = f.confrelid and b.attnum = u.other) as k
                          where f.conrelid = c.oid and f.contype = 'f' and f.conparentid = 0))::text as found
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p') and not c.relispartition and c.relpersistence <> 't'
   and n.nspname not in ('pg_catalog', 'pg_toast', 'information_schema', 'annals')
 order by n.nspname <> 'public', n.nspname collate "C", c.relname collate "C"`;
