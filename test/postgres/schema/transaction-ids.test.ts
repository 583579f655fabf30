import pg from 'pg';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { readPackageSchema } from '../../../src/postgres/schema/read-schema.ts';
import { columnsOfTransactionIds } from '../../../src/postgres/schema/transaction-ids.ts';
import { watchSchema } from '../../../src/postgres/schema/watch-schema.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { givePositions } from '../../../src/recording/positions.ts';
import { recordChangesOf, resumedExport, wholeExport } from '../../support/server/cut-exports.ts';
import {
  createSingleTestDatabase,
  createTestDatabaseForThisTest,
  type TestDatabase,
} from '../../support/server/database.ts';
import { makeForeign } from '../../support/server/foreign.ts';
import { eventually } from '../../support/server/patience.ts';
import { schemaText } from '../../support/server/schema-text.ts';

const tenant = 'acme';
const regexes = new RegexMatcherPool();

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabaseForThisTest(createSingleTestDatabase);
  await createTenant(database.db, tenant);
  await record('old', 40);
});

const record = (actor: string, count: number) => recordChangesOf(database, actor, count);

async function migrateAtOnce(processes: number): Promise<void> {
  const pools = Array.from({ length: processes }, () => createPool(database.url, { maximum: 2 }));
  await Promise.all(pools.map((pool) => migrate(pool)));
  await Promise.all(pools.map((pool) => pool.end()));
}

const lineageAndOrigin = async () =>
  (await database.pool.query(`select change_lineage('acme') as lineage, o.* from database_origin o`)).rows;

test('on another server, an export that is cut off and resumed has every entry and no later one', async () => {
  await makeForeign(database);
  await record('new', 5);
  const whole = await wholeExport(database, regexes);
  // What this is about: without a reset, the second part lacks the entries that came with the copy.
  expect((await resumedExport(database, regexes)).length).toBeLessThan(whole.length);
  await migrateAtOnce(4);
  const then = await wholeExport(database, regexes);
  expect(then.match(/"old"/g)).toHaveLength(40);
  expect(await resumedExport(database, regexes)).toBe(then);
});

test('a reset empties every column of transaction ids, leaves the schema as it is and rewrites no entry', async () => {
  const fileOf = async () =>
    (
      await database.pool.query(
        `select pg_relation_filenode('change_entry') as file, min(ctid)::text from change_entry`,
      )
    ).rows;
  await givePositions(database.db, tenant);
  await makeForeign(database);
  await database.pool.query(
    `insert into job (tenant, id, type, status, document, fields, input, snapshot, since, last_at, last_sequence)
       values ($1, 'j', 'EXPORT', 'in_progress', '{}', '{}', '{}', pg_current_snapshot(), 1, 1, 1)`,
    [tenant],
  );
  const [schema, file, columns] = [await schemaText(database.pool), await fileOf(), await columnsOf()];
  expect(columns.map(({ table, column }) => `${table}.${column}`)).toEqual([
    'change_actor.registered',
    'change_delta.transaction',
    'change_entry.recorded',
    'change_entry.recorded_on',
    'change_kind.registered',
    'change_position.snapshot',
    'change_position.placement',
    'job.snapshot',
    'job.snapshot_on',
  ]);
  await migrateAtOnce(1);
  expect(await schemaText(database.pool)).toBe(schema);
  expect(await fileOf()).toEqual(file);
  expect(await columnsOf()).toEqual(columns);
  for (const { table, column } of columns) {
    const { rows } = await database.pool.query(`select distinct ${column}::text as value from ${table}`);
    expect(rows).toEqual([{ value: column === 'registered' ? '0' : null }]);
  }
  await record('new', 1);
  expect((await database.pool.query('select from change_entry where recorded is not null')).rowCount).toBe(1);
});

const columnsOf = () => columnsOfTransactionIds(database.pool);

test('another system identifier alone tells another server', async () => {
  const before = await lineageAndOrigin();
  await database.pool.query(`update database_origin set system_identifier = '1', written_by = pg_current_xact_id()`);
  await migrateAtOnce(1);
  const after = await lineageAndOrigin();
  expect(after[0].system_identifier).toBe(before[0].system_identifier);
  // So no process continues with names that it has read before.
  expect(after[0].lineage).not.toBe(before[0].lineage);
});

test('on the same server nothing is reset: not at a second start, after VACUUM FULL, nor in a copy of the files', async () => {
  await migrateAtOnce(1);
  const before = await lineageAndOrigin();
  await database.pool.query('vacuum (full, freeze) database_origin');
  await migrateAtOnce(3);
  expect(await lineageAndOrigin()).toEqual(before);
  expect((await database.pool.query('select from change_entry where recorded is null')).rowCount).toBe(0);
});

test('where the role may not ask for the system identifier, a copy is found all the same', async () => {
  const superuser = new pg.Client(asSuperuser(database.url));
  await superuser.connect();
  onTestFinished(() => superuser.end());
  await superuser.query('revoke execute on function pg_control_system() from public');
  await makeForeign(database);
  await migrateAtOnce(2);
  expect(await lineageAndOrigin()).toMatchObject([{ system_identifier: null }]);
  const before = await lineageAndOrigin();
  await migrateAtOnce(1);
  expect(await lineageAndOrigin()).toEqual(before);
});

function asSuperuser(url: string): string {
  const superuser = new URL(url);
  superuser.username = 'postgres';
  return superuser.href;
}

test('a process is stopped when its URL leads to a copy from another server', async () => {
  await migrateAtOnce(1);
  const watch = await watchSchema(database.url, () => readPackageSchema());
  onTestFinished(() => watch.close());
  expect(watch.reason).toBeUndefined();
  await makeForeign(database);
  await eventually(() => watch.reason).toContain('The database is a copy from another server now');
  expect(watch).toMatchObject({ late: true, signal: { aborted: true } });
});

test('the error of a role that does not own the tables names the role that has to migrate', async () => {
  const role = `reader_${database.url.slice(-8)}`;
  const superuser = new pg.Client(asSuperuser(database.url));
  await superuser.connect();
  onTestFinished(async () => {
    await superuser.query(`drop owned by ${role}; drop role ${role}`);
    await superuser.end();
  });
  await superuser.query(`create role ${role} login password 'secret';
    grant select, insert, update, delete on all tables in schema public to ${role}`);
  await makeForeign(database);
  const url = new URL(database.url);
  url.username = role;
  url.password = 'secret';
  const pool = createPool(url.href, { maximum: 2 });
  onTestFinished(() => pool.end());
  await expect(migrate(pool)).rejects.toThrow('run "annals migrate" with the role that owns the tables');
});
