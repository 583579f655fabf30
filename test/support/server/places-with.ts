import pg from 'pg';
import type { TestDatabase } from './database.ts';

/** The tables in whose rows a text stands, in any case of its letters: what `pg_dump` would write. */
export async function tablesWith({ pool }: Pick<TestDatabase, 'pool'>, word: string): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select c.relname as name from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
  );
  const found: string[] = [];
  for (const { name } of rows) {
    const { rowCount } = await pool.query(`select from ${name} t where t::text ilike $1`, [`%${word}%`]);
    if (rowCount !== 0) found.push(name);
  }
  return found;
}

/**
 * The files of a database of the tests' own server that have one of these texts, after a checkpoint: tables, indexes
 * and its catalogues.
 */
export async function databaseFilesWith(
  { url }: Pick<TestDatabase, 'url'>,
  words: readonly string[],
): Promise<string[]> {
  const superuser = new pg.Client(Object.assign(new URL(url), { username: 'postgres' }).href);
  await superuser.connect();
  try {
    await superuser.query('checkpoint');
    const { rows } = await superuser.query<{ file: string }>(
      `select word || ' in ' || file as file
         from (select 'base/' || oid || '/' as folder from pg_database where datname = current_database()) as d
         cross join lateral pg_ls_dir(folder) as file
         cross join lateral pg_read_binary_file(folder || file, true) as content
         join unnest($1::text[]) as word on position(convert_to(word, 'UTF8') in content) > 0`,
      [words],
    );
    return rows.map(({ file }) => file);
  } finally {
    await superuser.end();
  }
}
