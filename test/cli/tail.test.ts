import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { runCommandLine } from '../../src/cli/commands/command-line.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { annals, startAnnals } from '../support/server/command.ts';
import { createTestDatabase, type TestDatabase } from '../support/server/database.ts';
import { startDatabaseProxy } from '../support/server/database-proxy.ts';
import { changeOf } from '../support/server/history.ts';
import { testSecretKeys } from '../support/server/server.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15);
let database: TestDatabase;
let environment: Record<string, string>;
let folder: string;

beforeAll(async () => {
  database = await createTestDatabase();
  // Ended on purpose.
  database.pool.on('error', () => {});
  const key = testSecretKeys.map((one) => Buffer.from(one).toString('base64')).join(',');
  environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: key, LOG_LEVEL: 'fatal' };
  folder = await mkdtemp(join(tmpdir(), 'annals-tail-'));
  await createTenant(database.db, tenant);
});

afterAll(async () => {
  await rm(folder, { recursive: true });
  await database.drop();
});

async function record(at: number, more: object = {}): Promise<void> {
  await createRecorder(database.db, tenant, () => now)([changeOf({ at: now + at, ...more })]);
}

/** The command, whose lines are read one by one. */
function startTail(...args: string[]) {
  const stop = new AbortController();
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  let told = '';
  stderr.on('data', (chunk) => {
    told += chunk;
  });
  const ended = runCommandLine(['tail', '--tenant', tenant, ...args], {
    environment,
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
      JSON.parse((await lines.next()).value ?? 'null') as { position: number; at: string; cursor: string },
    end,
    ended,
    stdout,
    told: () => told,
  };
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

test('what begins with now and is stopped before a change goes on from there', async () => {
  const file = join(folder, 'now');
  const tail = startTail('--cursor-file', file);
  await expect.poll(() => readFile(file, 'utf8').catch(() => '')).not.toBe('');
  expect(await tail.end()).toBe(0);
  await record(20);
  const again = startTail('--cursor-file', file);
  expect((await again.next()).at).toBe(new Date(now + 20).toISOString());
});

test('it goes on after the database was away, and after connections were cut', async () => {
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

test('a process that starts while the database is away waits, says so once, and prints what comes when it is back', async () => {
  const proxy = await startDatabaseProxy(database.url);
  proxy.failAfter(0, 'away');
  const file = join(folder, 'away.cursor');
  const tail = startAnnals(['tail', '--tenant', tenant, '--cursor-file', file], {
    ...environment,
    DATABASE_URL: proxy.url,
  });
  let stderr = '';
  tail.process.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  onTestFinished(async () => {
    tail.process.kill('SIGKILL');
    await tail.ended;
    await proxy.close();
  });
  await Promise.race([
    expect.poll(() => proxy.refused, { timeout: 30_000 }).toBeGreaterThan(2),
    tail.ended.then((ended) => {
      throw new Error(`tail ended with ${ended.code}: ${ended.stderr}`);
    }),
  ]);
  expect(stderr).toContain('It waits until the database is back.');
  proxy.mend();
  await expect.poll(() => stderr, { timeout: 30_000 }).toContain('the database can be reached again');
  const printed = once(tail.process.stdout as NodeJS.ReadableStream, 'data');
  await record(42, { entity: 'later' });
  expect(String(await printed)).toContain('"later"');
  expect(stderr.match(/It waits/g)).toHaveLength(1);
});

test.each([
  ['a wrong database', '/nothing-there'],
  ['an unknown tenant', ''],
])('waiting does not mend %s: it ends', async (_what, path) => {
  const url = new URL(database.url);
  if (path !== '') url.pathname = path;
  const { code, stderr } = await annals(['tail', '--tenant', 'nobody'], { ...environment, DATABASE_URL: url.href });
  expect([code, stderr]).toEqual([1, expect.not.stringContaining('It waits')]);
});

test('a restored database is told, and nothing that it has is left out', async () => {
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

test('it ends when nobody reads any more', async () => {
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
