import { Readable } from 'node:stream';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { tablesToBackUp } from '../../../src/postgres/backup/backed-up-tables.ts';
import { readArchive } from '../../../src/postgres/backup/tar.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { altered, backupOf, readToItsEnd, relationsOf, restored, rowsOfTables } from '../../support/server/backups.ts';
import {
  createEmptyTestDatabase,
  createSingleTestDatabase,
  createTestDatabaseForThisTest,
  type TestDatabase,
} from '../../support/server/database.ts';
import { makeForeign } from '../../support/server/foreign.ts';
import { changeOf } from '../../support/server/history.ts';
import { readInstances } from '../../support/server/instances.ts';
import { type Call, contentOf, endOfJob, itemsOfQuery, startExport } from '../../support/server/jobs.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const json = { 'content-type': 'application/json' };
const notes = `/schema/${tenant}/custom-entities/NOTE/instances`;
const q = 'occurredAt:>="1970-01-01T00:00:00Z"';

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createEmptyTestDatabase();
  onTestFinished(database.drop);
  return database;
}

async function serverOn(database: TestDatabase): Promise<TestServer> {
  const server = await startTestServer({ database });
  onTestFinished(() => server.close());
  return server;
}

/** Records and folds, one small transaction after the other, until the returned function is called. */
function recordOn({ db }: TestDatabase): () => Promise<void> {
  const record = createRecorder(db, tenant, () => Date.now());
  let goesOn = true;
  const recording = (async () => {
    for (let n = 0; goesOn; n += 1) {
      await record([changeOf({ at: Date.now(), entityId: `${n}`, paths: `{"x":{"after":${n}}}` })]);
      if (n % 5 === 0) await foldHistory(db, tenant);
    }
  })();
  return async () => {
    goesOn = false;
    await recording;
  };
}

test('a backup that is made while others record has one moment, and all continues where it is restored', async () => {
  const database = await createTestDatabaseForThisTest(createSingleTestDatabase);
  const source = await serverOn(database);
  const token = await source.token(tenant);
  const call: Call = (path, init) => source.call(path, { ...init, token });
  const type = '{"id":"NOTE","name":{"en":"Note"}}';
  await call(`/schema/${tenant}/custom-entities`, { method: 'POST', headers: json, body: type });
  for (let n = 0; n < 5; n += 1) await call(notes, { method: 'POST', headers: json, body: `{"n":${n}}` });
  const listing = { tenant, type: 'NOTE', token, by: 'list' } as const;
  const first = await readInstances(source, listing, { pageSize: 2 });
  // An export that was cut off: its file has parts that are not to be in the file of the next attempt.
  const id = await startExport(call, tenant, { q, format: 'NDJSON' });
  await endOfJob(call, tenant, id);
  await database.pool.query(
    `update job set status = 'in_progress', held_until = 'infinity', snapshot = pg_current_snapshot(), since = 0,
       (last_at, last_sequence) = (select at, sequence from change_entry order by at limit 1)`,
  );
  await database.pool.query(
    `insert into mail (tenant, message_id, recipient, subject, content) values ('acme', 'm', 'r', 's', 'c')`,
  );
  await makeForeign(database);

  const recorded = async () => (await database.pool.query('select from change_entry')).rowCount ?? 0;
  const stop = recordOn(database);
  await eventually(recorded).toBeGreaterThan(6);
  const backup = await backupOf(database);
  const then = await recorded();
  await eventually(recorded).toBeGreaterThan(then);
  await stop();
  const later = await recorded();

  const target = await emptyDatabase();
  const { manifest, leftOut } = await restored(target, backup);
  expect(leftOut).toEqual([]);
  const entries = manifest.tables.find(({ name }) => name === 'change_entry')?.rows ?? 0;
  expect(entries).toBeGreaterThan(6);
  expect(entries).toBeLessThan(later);
  expect(await migrate(target.pool)).toEqual([]);
  const there = await serverOn(target);
  const callThere: Call = (path, init) => there.call(path, { ...init, token });

  // The totals come from tallies and from what waits for them: both are of the moment of the entries.
  const items = await itemsOfQuery(callThere, tenant, q);
  expect(items.length).toBe(entries);
  const next = new URL(first.next ?? '', 'http://annals').searchParams;
  const second = await readInstances(there, listing, Object.fromEntries(next));
  expect(second.ids).toEqual((await readInstances(source, listing, Object.fromEntries(next))).ids);
  expect((await target.pool.query('select from mail')).rowCount).toBe(0);

  await createRecorder(target.db, tenant, () => Date.now())([changeOf({ at: Date.now(), actor: 'new' })]);
  const { rows } = await target.pool.query(
    'select (array_agg(sequence order by sequence desc))[1:2] as last from change_entry',
  );
  expect(Number(rows[0].last[0])).toBeGreaterThan(Number(rows[0].last[1]));
  await target.pool.query('update job set held_until = null');
  await eventually(async () => (await target.pool.query('select status from job')).rows).toEqual([
    { status: 'success' },
  ]);
  const lines = (await contentOf(callThere, tenant, id)).trimEnd().split('\n');
  expect(lines).toEqual(await itemsOfQuery(callThere, tenant, q));
  expect(lines.length).toBe(entries + 1);
});

/** Leaves the files of an archive away, from the first one whose name has this text. */
function cutBefore(archive: Buffer, name: string): Buffer {
  const end = Math.floor(archive.lastIndexOf(name) / 512) * 512;
  return zstdCompressSync(Buffer.concat([archive.subarray(0, end), Buffer.alloc(1024)]));
}

test('a backup that is damaged, cut off, or of a later format is none', async () => {
  const source = await createTestDatabaseForThisTest();
  await source.pool.query(`insert into tenant (tenant) values ('acme'), ('globex')`);
  const backup = await backupOf(source);
  const archive = zstdDecompressSync(backup);
  const flipped = Buffer.from(backup);
  flipped.writeUInt8(flipped.readUInt8(1_000) ^ 1, 1_000);
  const none = 'not a backup of Annals, or it is damaged';
  const faults: Record<string, [Buffer, string]> = {
    'a last byte less': [backup.subarray(0, -1), 'it ends too early'],
    'half of it': [backup.subarray(0, 1_000), 'it ends too early'],
    'no manifest': [cutBefore(archive, 'manifest.json'), 'it has no manifest'],
    'no byte': [Buffer.alloc(0), 'it ends too early'],
    'another bit': [flipped, none],
    'another value': [altered(backup, 'globex\t', 'global\t'), 'its table tenant does not match its manifest'],
    'another name of a file': [altered(backup, 'begin.json', 'begin.text'), none],
    'another name of a folder': [altered(backup, 'tables/tenant/', 'tables/tenants'), none],
    'a later format': [altered(backup, '"format": 2', '"format": 3'), 'The backup has format 3'],
    'a text': [Buffer.from('a text'), none],
  };
  for (const [what, [file, message]] of Object.entries(faults)) {
    const outcome = await readToItsEnd(file).catch((error) => `${error.name}: ${error.message}`);
    expect(outcome, what).toContain(message);
    expect(outcome, what).toMatch(/^OperatorError: /);
  }
  expect(await readToItsEnd(backup)).toBe('read to its end');
});

test('a restore that fails leaves the database empty, and one that is not empty is left as it is', async () => {
  const source = await createTestDatabaseForThisTest();
  await source.pool.query(`insert into tenant (tenant) values ('acme'), ('globex')`);
  const backup = await backupOf(source);
  const columns = '"name": "tenant",\n      "columns": [\n        "tenant",\n        "created_at"';
  const faults: [Buffer, string][] = [
    [altered(backup, 'globex\t', 'acme\n2\t'), 'The backup is damaged: missing data for column'],
    [altered(backup, '"rows": 2,', '"rows": 3,'), 'The backup was altered'],
    [altered(backup, '"schema": 9,', '"schema":99,'), 'The backup has schema 99'],
    [altered(backup, '0001-baseline.sql', '0001-baseleno.sql'), 'does not know the migration 0001-baseleno.sql'],
    [
      altered(backup, columns, columns.replace('created_at', 'created_by')),
      'has a column that its migrations do not make: created_by',
    ],
  ];
  const target = await emptyDatabase();
  for (const [file, message] of faults) {
    const outcome = await restored(target, file).catch((error) => error.message);
    expect(outcome).toContain(message);
  }
  expect(await relationsOf(target)).toEqual([]);
  await restored(target, backup);
  await expect(restored(target, backup)).rejects.toThrow('The database is not empty: it has');
  expect(await rowsOfTables(target)).toEqual(await rowsOfTables(source));
});

test('a backup has every table but those of the schema itself, of sessions and grants, and of what waits to be sent', async () => {
  const { pool } = await createTestDatabaseForThisTest();
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_class
       where relnamespace = 'public'::regnamespace and relkind = 'r' order by relname`,
  );
  const client = await pool.connect();
  const has = (await tablesToBackUp(client)).map(({ name }) => name);
  client.release();
  expect(rows.map(({ name }) => name).filter((name) => !has.includes(name))).toEqual([
    'access_grant',
    'console_link',
    'console_session',
    'database_origin',
    'found_work',
    'logout_token',
    'mail',
    'migration',
    'routine',
    'routine_set',
    'schema_change',
    'schema_process',
    'tenant_rate',
  ]);
});

test('an archive is read in whatever chunks it comes, and files that are not read are skipped', async () => {
  const source = await createTestDatabaseForThisTest();
  const archive = zstdDecompressSync(await backupOf(source));
  const names = async (size: number) => {
    const chunks = Array.from({ length: Math.ceil(archive.length / size) }, (_, n) =>
      archive.subarray(n * size, (n + 1) * size),
    );
    const seen: string[] = [];
    for await (const { name, size: bytes } of readArchive(Readable.from(chunks))) seen.push(`${name} ${bytes}`);
    return seen;
  };
  const whole = await names(archive.length);
  expect(whole.at(0)).toMatch(/^begin\.json /);
  expect(whole.at(-1)).toMatch(/^manifest\.hmac /);
  for (const size of [1, 511, 512, 513]) expect(await names(size)).toEqual(whole);
});
