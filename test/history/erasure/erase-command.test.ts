import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { openEmbeddedDatabase } from '../../../src/postgres/embedded/open-embedded-database.ts';
import { makeProofKey } from '../../../src/proof/log/signer.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { trials } from '../../support/oracle/trials.ts';
import { annals } from '../../support/server/command.ts';
import { copyDataFolder, removeDataFolder } from '../../support/server/data-folder.ts';
import { createEmptyTestDatabase, createSingleTestDatabase } from '../../support/server/database.ts';
import { runErasureLaw } from '../../support/server/erasure-law.ts';
import type { Call } from '../../support/server/jobs.ts';
import { tablesWith } from '../../support/server/places-with.ts';
import { startTestServer } from '../../support/server/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startReceiver } from '../../support/vendor/receiver.ts';

const secret = Buffer.alloc(32, 9).toString('base64');
const now = Date.now();

let environment: Record<string, string>;

const database = closeAfterAll(await createSingleTestDatabase());
environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: secret };

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

test.each([
  ['name', false],
  ['id', true],
])(
  'an erasure by the %s killed amid recording, sealing, export and delivery resumes on the next call, and all of it is proved',
  async (by, isById) => {
    const key = Buffer.from(secret, 'base64');
    const tenant = `killed${by}`;
    const server = await startTestServer({
      ...{ database, secretKeys: [key] },
      environment: { ANNALS_DELIVERY_ALLOW: `${tenant}=127.0.0.0/8` },
    });
    const receiver = await startReceiver();
    const keyFile = join(temporaryFolder(), 'key');
    makeProofKey(keyFile);
    try {
      const token = await server.token(tenant);
      const call: Call = (path, init) => server.call(path, { ...init, token });
      const law = { database, secret: key, keyFile, tenant, call, receiver, kills: trials(2), isById };
      const { faults, kills } = await runErasureLaw({ ...law, pauses: { changes: 300, exports: 4_000 } });
      expect(faults).toEqual([]);
      expect(kills).toBeGreaterThan(0);
    } finally {
      await server.close();
      await receiver.close();
    }
  },
);

/** Files of tables, indexes and catalogues that contain a text, in the data folder of a stopped server. */
function filesWith(word: string, folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile() && /\/(?:base|global)(?:\/|$)/.test(file.parentPath))
    .map((file) => join(file.parentPath, file.name))
    .filter((file) => readFileSync(file).includes(word));
}

test('--vacuum leaves nothing in the database files or statistics, and reports how long it locked each table', async () => {
  const dataDir = await copyDataFolder(inject('initialisedFolder'));
  // The commands share this server until the files are inspected.
  const embedded = await openEmbeddedDatabase({ dataDir, log: () => {}, durability: 'none' });
  try {
    environment = { ANNALS_DATA_DIR: dataDir, ANNALS_SECRET_KEY: secret };
    await newTenant('files', 60);
    const words = ['canary-files', 'Canary files', 'canary-files-value', 'Cana files'];
    const erase = (...args: string[]) => run('erase', '--tenant', 'files', ...args, '--reason', 'request', '--yes');
    expect((await erase('--actor', 'Canary files')).code).toBe(0);
    await embedded.release();
    // Still in the files: PostgreSQL keeps old row versions.
    expect(filesWith('canary-files', dataDir)).not.toEqual([]);
    const { stdout, stderr, code } = await erase('--entity', 'customer', '--entity-id', 'canary-files', '--vacuum');
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const { vacuumed } = JSON.parse(stdout) as { vacuumed: { table: string; locked: number }[] };
    const tables = vacuumed.map(({ table }) => table);
    expect(tables).toEqual(expect.arrayContaining(['change_entry', 'pg_catalog.pg_statistic']));
    expect(stderr).toContain('change_entry was rewritten, and locked for');
    for (const word of words) expect(filesWith(word, dataDir)).toEqual([]);
  } finally {
    await embedded.release();
    environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: secret };
    await removeDataFolder(dataDir);
  }
});

test('an earlier backup is restored without what was erased since, by the file of erasures', async () => {
  await newTenant('backed', 6);
  const folder = temporaryFolder();
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
});
