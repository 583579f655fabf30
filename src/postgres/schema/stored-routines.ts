import type pg from 'pg';

/** A function, procedure or aggregate of the database. */
export interface StoredRoutine {
  oid: number;
  name: string;
  /** `change_total(text,text[],text[],bigint,bigint)` */
  signature: string;
  /** A new value after each change. */
  version: string;
  body: string;
  /** The function that checks a body of its language; null if there is none. */
  validator: string | null;
}

/** The routines of the schema that Annals uses. */
export async function storedRoutines(client: pg.ClientBase): Promise<StoredRoutine[]> {
  const { rows } = await client.query<StoredRoutine>(
    `select p.oid::bigint as oid, p.proname as name, p.oid::regprocedure::text as signature, p.xmin::text as version,
            p.prosrc as body, case when l.lanvalidator <> 0 and p.prokind <> 'a' then l.lanvalidator::regproc::text end as validator
       from pg_proc p join pg_language l on l.oid = p.prolang
       where p.pronamespace = current_schema()::regnamespace`,
  );
  return rows;
}

/** The name of the schema that Annals uses, quoted if necessary. */
export async function currentSchema(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ schema: string | null }>('select quote_ident(current_schema()) as schema');
  const schema = rows[0]?.schema ?? null;
  if (schema === null) throw new Error('the search path of the database names no schema that exists');
  return schema;
}
