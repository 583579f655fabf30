import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { hasOwnTransactionIds } from '../../src/postgres/schema/transaction-ids.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { relationsOf, rowsOfTables } from '../support/server/backups.ts';
import { annals, launcherOfRun } from '../support/server/command.ts';
import {
  createEmptyTestDatabase,
  createTestDatabase,
  createTestDatabaseForThisTest,
  type TestDatabase,
} from '../support/server/database.ts';
import { temporaryFolder } from '../support/server/package-copy.ts';

const timeout = 120_000;
const key = randomBytes(32).toString('base64');

let folder: string;
let file: string;

const source = closeAfterAll(await createTestDatabase());
await createTenant(source.db, 'acme');

beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder, 'annals.tar.zst');
});

const makeTarget = () => createTestDatabaseForThisTest(createEmptyTestDatabase);

const environmentOf = ({ url }: TestDatabase, secret = key) => ({ DATABASE_URL: url, ANNALS_SECRET_KEY: secret });

/** Makes the backup longer than what a pipe and the programs at its ends keep. */
async function addBallast(): Promise<void> {
  onTestFinished(async () => void (await source.pool.query('truncate change_rejected')));
  await source.pool.query(
    `insert into change_rejected (tenant, id, way, position, reason, sealed)
       select 'acme', gen_random_uuid(), 'recorder', 'p', 'r', sha512(n::text::bytea) || sha512((-n)::text::bytea)
         from generate_series(1, 5000) n`,
  );
}

test('a backup into a file is for its owner alone, and is restored with the same rows', async () => {
  await writeFile(file, 'an older backup');
  const made = await annals(['backup', file], environmentOf(source));
  expect(made).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(made.stdout)).toMatchObject({ file, rows: 2, schema: expect.any(Number) });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(['annals.tar.zst']);
  expect((await readFile(file)).includes(Buffer.from(key, 'base64'))).toBe(false);

  const target = await makeTarget();
  const wrong = await annals(['restore', file], environmentOf(target, randomBytes(32).toString('base64')));
  expect(wrong).toMatchObject({ code: 1, stdout: '' });
  expect(wrong.stderr).toContain('The secret key does not fit');
  expect(await relationsOf(target)).toEqual([]);

  const rotated = { ...environmentOf(target), ANNALS_SECRET_KEY: `${randomBytes(32).toString('base64')},${key}` };
  const done = await annals(['restore', file], rotated);
  expect(done).toMatchObject({ code: 0, stderr: '' });
  const { schema, createdAt, tables } = JSON.parse(made.stdout);
  expect(JSON.parse(done.stdout)).toEqual({ schema, createdAt, tables, rows: 2 });
  expect(await rowsOfTables(target)).toEqual(await rowsOfTables(source));
  expect((await target.pool.query(`select ${hasOwnTransactionIds} as own`)).rows).toEqual([{ own: true }]);
  expect((await annals(['tenant', 'list'], environmentOf(target))).stdout).toContain('"name":"acme"');

  const again = await annals(['restore', file], environmentOf(target));
  expect(again).toMatchObject({ code: 1, stdout: '' });
  expect(again.stderr).toContain('The database is not empty');
});

test('a backup written to stdout restores from stdin, with a warning about keys that are missing', {
  timeout,
}, async () => {
  await addBallast();
  const keys = `${key},${randomBytes(32).toString('base64')}`;
  const env = { PATH: process.env.PATH, ...environmentOf(source, keys) };
  const options = { env, encoding: 'buffer', maxBuffer: 1e9 } as const;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [launcherOfRun(), 'backup', '-'], options);
  expect(JSON.parse(String(stderr))).toMatchObject({ file: '-', rows: 5_002 });
  const target = await makeTarget();
  const restoring = promisify(execFile)(process.execPath, [launcherOfRun(), 'restore', '-'], {
    env: { ...env, ...environmentOf(target) },
  });
  restoring.child.stdin?.end(stdout);
  expect((await restoring).stderr).toContain('1 older keys of the backup are missing');
  expect(await rowsOfTables(target)).toEqual(await rowsOfTables(source));
});

test('a backup is refused before a data folder is made: without its key, or where it is none', async () => {
  await annals(['backup', file], environmentOf(source));
  const dataDir = join(folder, 'data');
  const without = await annals(['restore', file], { ANNALS_DATA_DIR: dataDir });
  expect(without).toMatchObject({ code: 1, stdout: '' });
  expect(without.stderr).toContain(`the secret key is missing: set ANNALS_SECRET_KEY, or put the secret.key`);
  const none = await annals(['restore', '-'], { ANNALS_DATA_DIR: dataDir }, 'a text');
  expect(none).toMatchObject({ code: 1, stderr: 'annals: The file is not a backup of Annals, or it is damaged.\n' });
  const missing = await annals(['restore', join(folder, 'nothing')], { ANNALS_DATA_DIR: dataDir });
  expect(missing.stderr).toMatch(/^annals: the backup cannot be read: ENOENT/);
  expect(await readdir(folder)).toEqual(['annals.tar.zst']);
  const nowhere = await annals(['backup', join(folder, 'no', 'folder')], environmentOf(source));
  expect(nowhere).toMatchObject({ code: 1, stdout: '' });
  expect(nowhere.stderr).toMatch(/^annals: the backup cannot be written: ENOENT/);
});

test('verify confirms a backup with its key alone, and a changed one is exit code 1', async () => {
  await annals(['backup', file], environmentOf(source));
  const keyAlone = { ANNALS_SECRET_KEY: key, ANNALS_DATA_DIR: join(folder, 'data') };
  const confirmed = await annals(['backup', 'verify', file], keyAlone);
  expect(confirmed).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(confirmed.stdout)).toMatchObject({ file, rows: 2 });
  const withWrongKey = await annals(['backup', 'verify', file], {
    ...keyAlone,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  });
  expect(withWrongKey).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('The secret key does not fit'),
  });
  await writeFile(file, Buffer.concat([await readFile(file), Buffer.from('more')]));
  const changed = await annals(['backup', 'verify', file], keyAlone);
  expect(changed).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('something follows its end'),
  });
  const target = await makeTarget();
  expect(await annals(['restore', file], environmentOf(target))).toMatchObject({ code: 1 });
  expect(await relationsOf(target)).toEqual([]);
  expect(await readdir(folder)).toEqual(['annals.tar.zst']);
});
