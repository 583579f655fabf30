import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { packageSchema, type SchemaFolders } from '../../../src/postgres/schema/read-schema.ts';
import { createTestDatabaseForThisTest } from '../../support/server/database.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const rows = 2_000;
const page = `select id from custom_instance where tenant = 'acme' and type = 'note'
  order by sort_key(fields #> '{rank}', false), id collate "C" limit 20`;

/** A copy of the package's folders, to be edited. */
async function copyOfSchema(): Promise<SchemaFolders> {
  const folder = temporaryFolder();
  const copy = { migrations: join(folder, 'migrations'), routines: join(folder, 'sql') };
  await cp(packageSchema().migrations, copy.migrations, { recursive: true });
  await cp(packageSchema().routines, copy.routines, { recursive: true });
  return copy;
}

async function replaceIn(path: string, text: string, replacement: string): Promise<void> {
  const before = await readFile(path, 'utf8');
  expect(before).toContain(text);
  await writeFile(path, before.replace(text, replacement));
}

test('an index on sort_key keeps its order and its plan through an upgrade, and stops one that would change it', async () => {
  const { pool } = await createTestDatabaseForThisTest();
  await pool.query(`insert into tenant (tenant) values ('acme')`);
  await pool.query(
    `insert into custom_entity (tenant, id, version, document, fields) values ('acme', 'note', 1, '{}', '{}')`,
  );
  await pool.query(
    `insert into custom_instance (tenant, type, id, version, document, fields)
       select 'acme', 'note', 'n' || i, 1, '{}',
              case i % 5 when 0 then jsonb_build_object('rank', i * 7919 % 1000 / 10.0)
                         when 1 then jsonb_build_object('rank', 'text ' || i * 7919 % 1000)
                         when 2 then jsonb_build_object('rank', jsonb_build_array(i % 17, 'a'))
                         when 3 then jsonb_build_object('rank', jsonb_build_object('k', -i)) else '{}'::jsonb end
         from generate_series(1, $1) i`,
    [rows],
  );
  await pool.query(
    `create index note_rank on custom_instance (tenant, type, sort_key(fields #> '{rank}', false), id collate "C")`,
  );
  await pool.query('analyze custom_instance');
  const look = async () => ({
    page: (await pool.query(page)).rows,
    plan: (await pool.query(`explain (costs off) ${page}`)).rows.map((row) => row['QUERY PLAN']).join('\n'),
    index: (
      await pool.query(`select 'note_rank'::regclass::oid::bigint as oid, pg_relation_filenode('note_rank') as file`)
    ).rows,
  });
  const before = await look();
  expect(before.plan).toContain('note_rank');

  const folders = await copyOfSchema();
  const sortKey = join(folders.routines, 'pagination', 'indexed', 'sort_key.sql');
  await writeFile(
    join(folders.routines, 'pagination', 'one_more.sql'),
    `create function one_more() returns integer language sql as 'select 1'`,
  );
  await replaceIn(sortKey, '-- What a value sorts by', '-- By what a value sorts');
  await migrate(pool, folders);
  expect((await pool.query('select one_more()')).rowCount).toBe(1);
  expect(await look()).toEqual(before);

  // a helper counts as well: its name stands in no catalogue
  await replaceIn(
    join(folders.routines, 'pagination', 'indexed', 'canonical_string.sql'),
    'to_json(value)',
    'to_jsonb(value)',
  );
  await writeFile(
    join(folders.routines, 'pagination', 'two_more.sql'),
    `create function two_more() returns integer language sql as 'select 2'`,
  );
  await expect(migrate(pool, folders)).rejects.toThrow(
    'sql/pagination/indexed/canonical_string.sql differs from the routine that index note_rank uses.',
  );
  expect(await look()).toEqual(before);

  // gone from the folder, it stays in the database
  await rm(sortKey);
  await cp(
    join(packageSchema().routines, 'pagination', 'indexed', 'canonical_string.sql'),
    join(folders.routines, 'pagination', 'indexed', 'canonical_string.sql'),
  );
  await migrate(pool, folders);
  expect(await look()).toEqual(before);
});

test('without an index that uses them, such routines are replaced', async () => {
  const { pool } = await createTestDatabaseForThisTest();
  const folders = await copyOfSchema();
  await replaceIn(join(folders.routines, 'pagination', 'indexed', 'sort_key.sql'), `key := '\\x60'`, `key := '\\x70'`);
  await migrate(pool, folders);
  const { rows: found } = await pool.query(`select sort_key(null, false) as key`);
  expect(found).toEqual([{ key: Buffer.from([0x70]) }]);
});
