import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { runCommandLine } from '../../src/cli/commands/command-line.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { annals, startAnnals } from '../support/server/command.ts';
import {
  createSingleTestDatabase,
  createTestDatabase,
  createTestDatabaseForThisTest,
} from '../support/server/database.ts';
import { startDatabaseProxy } from '../support/server/database-proxy.ts';
import { changeOf } from '../support/server/history.ts';
import { eventually } from '../support/server/patience.ts';
import { testSecretKeys } from '../support/server/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15);
const database = closeAfterAll(await createTestDatabase());
// Ended on purpose.
database.pool.on('error', () => {});
const key = testSecretKeys.map((secret) => Buffer.from(secret).toString('base64')).join(',');
const environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: key, LOG_LEVEL: 'fatal' };
const folder = temporaryFolder();
await createTenant(database.db, tenant);

async function record(at: number, more: object = {}, { db } = database): Promise<void> {
  await createRecorder(db, tenant, () => now)([changeOf({ at: now + at, ...more })]);
}

/** The command, whose lines are read one by one. */
function startTail(...args: string[]) {
  return startTailOn(database.url, ...args);
}

function startTailOn(url: string, ...args: string[]) {
  const stop = new AbortController();
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  let messages = '';
  stderr.on('data', (chunk) => {
    messages += chunk;
  });
  const ended = runCommandLine(['tail', '--tenant', tenant, ...args], {
    environment: { ...environment, DATABASE_URL: url },
    stdin: new PassThrough(),
    stdout,
    stderr,
    answer: (line) => stdout.write(`${line}\n`),
    tell: (line) => stderr.write(`${line}\n`),
    stop: stop.signal,
  });
  const end = async () => {
    stop.abort('SIGTERM');
    return await ended;
  };
  onTestFinished(async () => void (await end()));
  return {
    next: async () =>
      JSON.parse((await lines.next()).value ?? 'null') as {
        position: number;
        at: string;
        entity: string;
        cursor: string;
      },
    end,
    ended,
    stdout,
    told: () => messages,
  };
}

/** Runs a statement on the server, and returns its number of rows. */
async function administer(statement: string): Promise<number> {
  const superuser = new URL(inject('databaseUrl'));
  superuser.username = 'postgres';
  const pool = createPool(superuser.href, { maximum: 1 });
  try {
    return (await pool.query(statement)).rowCount ?? 0;
  } finally {
    await pool.end();
  }
}

test('changes are printed as they come, and the cursor of what was printed is kept', async () => {
  const file = join(folder, 'cursor');
  await record(1, { paths: '{"price":{"after":1.10}}' });
  await record(2, { entity: 'product' });
  const tail = startTail('--after', 'start', '--q', 'entity:order', '--cursor-file', file);
  const first = await tail.next();
  expect(first).toMatchObject({ position: 1, at: new Date(now + 1).toISOString() });
  await record(3);
  const third = await tail.next();
  expect(third.position).toBe(3);
  await expect.poll(() => readFile(file, 'utf8')).toBe(`${third.cursor}\n`);
  expect(await tail.end()).toBe(0);
  await record(4);
  // The file wins.
  const again = startTail('--after', 'start', '--cursor-file', file);
  expect((await again.next()).position).toBe(4);
  expect(await again.end()).toBe(0);
});

test('what begins with now and is stopped before a change continues from there', async () => {
  const file = join(folder, 'now');
  const tail = startTail('--cursor-file', file);
  await expect.poll(() => readFile(file, 'utf8').catch(() => '')).not.toBe('');
  expect(await tail.end()).toBe(0);
  await record(20);
  const again = startTail('--cursor-file', file);
  expect((await again.next()).at).toBe(new Date(now + 20).toISOString());
});

test('it continues after the database was away, and after connections were cut', async () => {
  await record(30);
  const tail = startTail('--after', 'start', '--q', `occurredAt:>="${new Date(now + 30).toISOString()}"`);
  const seen = [(await tail.next()).at];
  for (let at = 31; at <= 34; at += 1) {
    await database.pool
      .query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      )
      .catch(() => {});
    await expect
      .poll(() =>
        record(at).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    while (seen.at(-1) !== new Date(now + at).toISOString()) seen.push((await tail.next()).at);
  }
  expect(seen.length).toBeGreaterThanOrEqual(5);
});

test('a process of its own waits for a database that is away, says so once, and once when it is back', async () => {
  const proxy = await startDatabaseProxy(database.url);
  const tail = startAnnals(['tail', '--tenant', tenant], { ...environment, DATABASE_URL: proxy.url });
  let [stdout, stderr] = ['', ''];
  tail.process.stdout?.on('data', (chunk) => {
    stdout += chunk;
  });
  tail.process.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  onTestFinished(async () => {
    tail.process.kill('SIGKILL');
    await tail.ended;
    await proxy.close();
  });
  await expect
    .poll(async () => {
      await record(40);
      return await Promise.race([tail.firstLine.then(() => true), sleep(100, false)]);
    })
    .toBe(true);
  proxy.failAfter(0, 'away');
  const waited = expect.poll(() => proxy.refused).toBeGreaterThan(3);
  await Promise.race([
    waited,
    tail.ended.then((ended) => {
      throw new Error(`tail ended with ${ended.code}: ${ended.stderr}`);
    }),
  ]);
  await expect.poll(() => stderr, { timeout: 30_000 }).toContain('It waits until the database is back.');
  expect(stderr).not.toContain('can be reached again');
  // Recorded while it waits.
  await record(41, { entity: 'meanwhile' });
  proxy.mend();
  await expect.poll(() => stdout, { timeout: 30_000 }).toContain('"meanwhile"');
  expect(stderr).toContain('the database can be reached again');
  await record(41, { entity: 'after' });
  await expect.poll(() => stdout).toContain('"after"');
  expect(stderr.match(/It waits|can be reached again/g)).toHaveLength(2);
  expect(stdout.match(/"meanwhile"/g)).toHaveLength(1);
});

test.skipIf(inject('cluster') !== null)(
  'a backup can be restored into a database that is dropped and recreated while it waits',
  { timeout: 60_000 },
  async () => {
    const before = await createTestDatabaseForThisTest(createSingleTestDatabase);
    const name = new URL(before.url).pathname.slice(1);
    before.pool.on('error', () => {});
    await createTenant(before.db, tenant);
    await record(80, {}, before);
    const file = join(folder, 'tail.tar.zst');
    const ofThis = { ...environment, DATABASE_URL: before.url };
    expect(await annals(['backup', file], ofThis)).toMatchObject({ code: 0 });
    await record(81, {}, before);
    const tail = startTailOn(before.url, '--after', 'start');
    expect([(await tail.next()).position, (await tail.next()).position]).toEqual([1, 2]);
    await administer(`drop database ${name} with (force)`);
    await eventually(tail.told).toContain('It waits until the database is back.');
    await administer(`create database ${name} owner ${new URL(before.url).username} template template1`);
    const connections = `select from pg_stat_activity where datname = '${name}' and application_name <> 'annals restore'`;
    await eventually(async () => await administer(connections)).toBeGreaterThan(0);
    expect(await annals(['restore', file], ofThis)).toMatchObject({ code: 0 });
    expect((await tail.next()).position).toBe(1);
    const after = createPool(before.url);
    onTestFinished(() => after.end());
    // The schema watch looks each second.
    const looked = `select from schema_process where seen_at > clock_timestamp() - interval '10 s'`;
    await eventually(async () => (await after.query(looked)).rowCount).toBe(1);
    await record(82, { entity: 'after' }, { ...before, db: createDatabase(after) });
    expect(await tail.next()).toMatchObject({ position: 2, entity: 'after' });
    expect(tail.told().match(/It waits|can be reached again|was restored to an earlier state/g)).toEqual([
      'It waits',
      'can be reached again',
      'was restored to an earlier state',
    ]);
    expect(await tail.end()).toBe(0);
  },
);

test.each([
  ['a wrong database', '/nothing-there'],
  ['an unknown tenant', ''],
])('waiting does not mend %s: it ends', async (_what, path) => {
  const url = new URL(database.url);
  if (path !== '') url.pathname = path;
  const { code, stderr } = await annals(['tail', '--tenant', 'nobody'], { ...environment, DATABASE_URL: url.href });
  expect([code, stderr]).toEqual([1, expect.not.stringContaining('It waits')]);
});

test('a restored database is announced, and none of its changes is left out', async () => {
  const tail = startTail('--q', `occurredAt:>="${new Date(now + 50).toISOString()}"`, '--after', 'start');
  await record(50);
  const first = await tail.next();
  await database.pool.query(
    `update change_position set fingerprints = (select array_agg(one # 1) from unnest(fingerprints) one) where tenant = $1`,
    [tenant],
  );
  await record(51);
  expect((await tail.next()).position).toBe(first.position);
  expect((await tail.next()).position).toBe(first.position + 1);
  expect(tail.told()).toContain('the database was restored to an earlier state');
});

test('it ends when its output is closed', async () => {
  const tail = startTail('--after', 'start');
  await tail.next();
  tail.stdout.destroy();
  await once(tail.stdout, 'close');
  await record(70);
  expect(await tail.ended).toBe(0);
});

test.each([
  [['tail'], 2, 'tail needs --tenant'],
  [['tail', '--tenant', tenant, '--after', 'then'], 2, 'is not a cursor of the feed of this tenant'],
  [['tail', '--tenant', tenant, '--q', 'what:ever'], 2, 'Unsupported query field: what'],
  [['tail', '--tenant', 'nobody'], 1, 'nobody'],
])('%j fails', async (args, code, message) => {
  const outcome = await annals(args, environment);
  expect({ code: outcome.code, stderr: outcome.stderr }).toEqual({ code, stderr: expect.stringContaining(message) });
});

test('a cursor file that holds something else is refused, and stays as it is', async () => {
  const file = join(folder, 'broken');
  await writeFile(file, 'not a cursor\n');
  const { code, stderr } = await annals(['tail', '--tenant', tenant, '--cursor-file', file], environment);
  expect([code, stderr]).toEqual([1, expect.stringContaining(`${file} holds no cursor of the feed of acme`)]);
  expect(await readFile(file, 'utf8')).toBe('not a cursor\n');
});
