import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { packageFolder } from '../../../src/core/package-folder.ts';
import { createSealer } from '../../../src/core/sealing.ts';
import { DictionaryCache } from '../../../src/history/names/dictionary-cache.ts';
import { createReadBundle } from '../../../src/history/proof/bundle/bundle-lines.ts';
import { makeProofKey } from '../../../src/history/proof/sealing/make-key.ts';
import { sealPortion } from '../../../src/history/proof/sealing/seal-tenants.ts';
import { openSigner } from '../../../src/history/proof/sealing/signer.ts';
import { readLog } from '../../../src/history/proof/tree/log-store.ts';
import { readReceiptsBetween } from '../../../src/history/proof/tree/receipts.ts';
import { parseReceipt } from '../../../src/history/proof/verify/receipts.ts';
import { verifyBundle } from '../../../src/history/proof/verify/verify-bundle.ts';
import { foldHistory } from '../../../src/history/tallies/fold.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { trials } from '../../support/oracle/trials.ts';
import { annals } from '../../support/server/command.ts';
import { copyDataFolder, removeDataFolder } from '../../support/server/data-folder.ts';
import { createEmptyTestDatabase, createSingleTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { tablesWith } from '../../support/server/places-with.ts';

const secret = Buffer.alloc(32, 9).toString('base64');
const now = Date.now();

let database: TestDatabase;
let environment: Record<string, string>;

beforeAll(async () => {
  database = await createSingleTestDatabase();
  environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: secret };
});

afterAll(() => database.drop());

const run = (...args: string[]) => annals(args, environment);

async function newTenant(tenant: string, entries: number): Promise<string> {
  expect((await run('tenant', 'create', tenant)).code).toBe(0);
  const lines = Array.from({ length: entries }, (_none, i) => {
    const at = new Date(now - 1_000 * i).toISOString();
    const who = i % 2 === 0 ? `Canary ${tenant}` : 'Bob';
    const after = { note: `from canary-${tenant}-value`, i };
    return `${JSON.stringify({ op: 'update', entity: 'customer', entityId: `canary-${tenant}`, name: `Cana ${tenant}`, at, actor: who, id: `l${i}`, before: {}, after })}\n`;
  }).join('');
  expect((await annals(['import', '--tenant', tenant, '-'], environment, lines)).code).toBe(0);
  return lines;
}

const has = (word: string, of = database) => tablesWith(of, word);

test('wrong usage is exit 2 and changes nothing', async () => {
  await newTenant('usage', 2);
  const of = ['erase', '--tenant', 'usage', '--actor', 'Canary usage'];
  for (const args of [
    [...of, '--reason', 'request'],
    [...of, '--yes'],
    [...of, '--reason', 'her wish', '--yes'],
    [...of, '--reason', 'law', '--yes', '--dry-run'],
    [...of, '--reason', 'law', '--vacuum', '--dry-run'],
    [...of, '--entity', 'customer', '--entity-id', '1', '--reason', 'law', '--yes'],
    ['erase', '--tenant', 'usage', '--entity', 'customer', '--reason', 'law', '--yes'],
    ['erase', '--tenant', 'usage', '--reason', 'law', '--yes'],
  ]) {
    expect(await run(...args), args.join(' ')).toMatchObject({ code: 2, stdout: '' });
  }
  expect(await has('Canary usage')).toContain('change_actor');
});

/** Records, folds and seals a tenant until it is told to end; then all that there is. */
function recordAndSeal(tenant: string, keyFile: string) {
  const { db } = database;
  const signer = openSigner(keyFile, 'annals.example');
  const record = createRecorder(db, tenant, () => Date.now(), createSealer([Buffer.from(secret, 'base64')]));
  let isOver = false;
  const seal = async () => {
    await foldHistory(db, tenant);
    await sql`update proof_log set signed_at = null where tenant = ${tenant}`.execute(db);
    return await sealPortion(db, tenant, { signer, now: () => Date.now() });
  };
  const working = (async () => {
    for (let round = 0; !isOver; round += 1) {
      await record([changeOf({ at: now + round, entityId: `other${round}`, actor: `Canary ${tenant}` })]);
      await seal();
    }
  })();
  return async () => {
    isOver = true;
    await working;
    while (await seal());
    signer.newest.close();
  };
}

/** What the history of a tenant is found to be, all receipts accepted. */
async function judged(tenant: string) {
  const { db, pool } = database;
  const regexes = new RegexMatcherPool();
  const readBundle = createReadBundle({ db, pool, regexes, now: Date.now, dictionaries: new DictionaryCache(pool) });
  const { vkey = '' } = (await readLog(db, tenant)) ?? {};
  const receipts = await readReceiptsBetween(db, tenant, 1, Number.MAX_SAFE_INTEGER);
  const accept = new Set(receipts.flatMap(([position, text]) => parseReceipt(position, text)?.name ?? []));
  const result = await verifyBundle(
    () => readBundle(tenant, {}),
    { keys: [vkey], accept },
    () => {},
  );
  await regexes.close();
  return result;
}

test('an erasure that is killed while others record and seal goes on with the next call, and all of it is proved', async () => {
  const kills = trials(2);
  const entries = 300 * kills;
  const lines = await newTenant('killed', entries);
  const folder = mkdtempSync(join(tmpdir(), 'annals-killed-'));
  makeProofKey(join(folder, 'key'));
  const endOthers = recordAndSeal('killed', join(folder, 'key'));
  const of = [
    'erase',
    '--tenant',
    'killed',
    '--entity',
    'customer',
    '--entity-id',
    'canary-killed',
    '--reason',
    'law',
    '--yes',
  ];
  for (let trial = 0; trial < kills; trial += 1) {
    const child = spawn(process.execPath, [join(packageFolder(), 'bin', 'annals.js'), ...of], {
      env: { ...process.env, ...environment },
      stdio: 'ignore',
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    // Until it has erased a portion more than the one before.
    for (let left = 0; child.exitCode === null; ) {
      const { rows } = await database.pool.query(`select entries from change_erasure where tenant = 'killed'`);
      left = rows[0]?.entries ?? 0;
      if (left > 200 * trial) break;
      await sleep(5);
    }
    child.kill('SIGKILL');
    await ended;
  }
  const { stdout } = await run(...of);
  expect(JSON.parse(stdout)).toMatchObject({ tenant: 'killed', entries });
  await endOthers();
  const { isRight, counts } = await judged('killed');
  expect(isRight).toBe(true);
  expect(counts.get('redacted')).toBeGreaterThan(200);
  rmSync(folder, { recursive: true });
  const { rows } = await database.pool.query(
    `select distinct entity_id from change_entry where tenant = 'killed' and entity_id not like 'other%'`,
  );
  expect(rows).toHaveLength(1);
  expect(await has('canary-killed')).toEqual([]);
  const again = await annals(['import', '--tenant', 'killed', '-'], environment, lines);
  expect(JSON.parse(again.stdout)).toMatchObject({ duplicate: entries, recorded: 0 });
});

/** Files of tables, indexes and catalogues in a data folder whose server has stopped that have a text. */
function filesWith(word: string, folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile() && /\/(?:base|global)(?:\/|$)/.test(file.parentPath))
    .map((file) => join(file.parentPath, file.name))
    .filter((file) => readFileSync(file).includes(word));
}

test('--vacuum leaves nothing in the files of the database nor in its statistics, and says how long it locked', async () => {
  const dataDir = await copyDataFolder(inject('initialisedFolder'));
  try {
    environment = { ANNALS_DATA_DIR: dataDir, ANNALS_SECRET_KEY: secret };
    await newTenant('files', 60);
    const words = ['canary-files', 'Canary files', 'canary-files-value', 'Cana files'];
    const erase = (...args: string[]) => run('erase', '--tenant', 'files', ...args, '--reason', 'request', '--yes');
    expect((await erase('--actor', 'Canary files')).code).toBe(0);
    // It can be found where it is: PostgreSQL keeps old versions of rows.
    expect(filesWith('canary-files', dataDir)).not.toEqual([]);
    const { stdout, stderr, code } = await erase('--entity', 'customer', '--entity-id', 'canary-files', '--vacuum');
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const { vacuumed } = JSON.parse(stdout) as { vacuumed: { table: string; locked: number }[] };
    const tables = vacuumed.map(({ table }) => table);
    expect(tables).toEqual(expect.arrayContaining(['change_entry', 'pg_catalog.pg_statistic']));
    expect(stderr).toContain('change_entry was rewritten, and locked for');
    for (const word of words) expect(filesWith(word, dataDir)).toEqual([]);
  } finally {
    environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: secret };
    await removeDataFolder(dataDir);
  }
});

test('a backup of before is restored without what was erased since, by the file of the erasures', async () => {
  await newTenant('backed', 6);
  const folder = mkdtempSync(join(tmpdir(), 'annals-erasures-'));
  const backup = join(folder, 'backup');
  expect((await run('backup', backup)).code).toBe(0);
  for (const of of [
    ['--actor', 'Canary backed'],
    ['--entity', 'customer', '--entity-id', 'canary-backed'],
  ]) {
    expect((await run('erase', '--tenant', 'backed', ...of, '--reason', 'request', '--yes')).code).toBe(0);
  }
  const { stdout } = await run('erase', '--list', '--tenant', 'backed');
  const listed = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(listed).toMatchObject([
    { reason: 'request', entries: 6 },
    { reason: 'request', entries: 3 },
  ]);
  expect(stdout).not.toMatch(/canary/i);
  writeFileSync(join(folder, 'erasures'), (await run('erase', '--list')).stdout);
  const target = await createEmptyTestDatabase();
  try {
    const restoring = { ...environment, DATABASE_URL: target.url };
    const restored = await annals(['restore', '--erasures', join(folder, 'erasures'), backup], restoring);
    expect(restored).toMatchObject({ code: 0 });
    expect(JSON.parse(restored.stdout)).toMatchObject({ erased: 2, failed: [] });
    for (const word of ['canary backed', 'canary-backed', 'cana backed']) expect(await has(word, target)).toEqual([]);
    const { rows } = await target.pool.query(`select distinct entity_id from change_entry where tenant = 'backed'`);
    const { rows: original } = await database.pool.query(
      `select distinct entity_id from change_entry where tenant = 'backed'`,
    );
    expect(rows).toEqual(original);
  } finally {
    await target.drop();
  }
  execFileSync('rm', ['-r', folder]);
});
