import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launcher, startAnnals } from '../support/server/command.ts';
import { createTestDatabase, type TestDatabase } from '../support/server/database.ts';

let database: TestDatabase;
let environment: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase();
  environment = {
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    PORT: '0',
    // Services that start at once on one database may build indexes against each other, which they warn of and try again.
    LOG_LEVEL: 'error',
  };
});

afterAll(() => database.drop());

// The two ways of an older Node: newer ones of them can become another program, the oldest have to run one.
describe.each(['execve', 'spawn'])('by %s', (way) => {
  test('the exit code, stdout and stderr are passed on', async () => {
    const unknown = await startAnnals(['sevre'], { ANNALS_LAUNCHER_WAY: way }).ended;
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toContain('unknown command sevre');
    const help = await startAnnals(['--help'], { ANNALS_LAUNCHER_WAY: way }).ended;
    expect(help).toMatchObject({ code: 0, stderr: '' });
  });
});

// By execve the service gets them itself, and serve.test.ts has the two others.
test.concurrent.each([
  ['execve', 'SIGHUP'],
  ['spawn', 'SIGHUP'],
  ['spawn', 'SIGINT'],
  ['spawn', 'SIGTERM'],
] as const)('by %s, %s ends the service in an orderly way', async (way, signal) => {
  const service = startAnnals(['serve'], { ...environment, ANNALS_LAUNCHER_WAY: way });
  const baseUrl = await service.firstLine;
  service.process.kill(signal);
  expect(await service.ended).toEqual({ code: 0, signal: null, stdout: `${baseUrl}\n`, stderr: '' });
});

test('a service whose launcher was killed ends by itself', async () => {
  const service = startAnnals(['serve'], { ...environment, ANNALS_LAUNCHER_WAY: 'spawn' });
  await service.firstLine;
  service.process.kill('SIGKILL');
  // The streams close only when the service itself has ended: it holds them too.
  expect((await service.ended).signal).toBe('SIGKILL');
});

test('without the Node of the npm package it says what to do', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'annals-launcher-'));
  await copyFile(launcher, join(folder, 'annals.js'));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const child = spawn(process.execPath, [join(folder, 'annals.js'), '--help'], {
    env: { ANNALS_LAUNCHER_WAY: 'spawn' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  await rm(folder, { recursive: true });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^annals: needs Node 26; .* run "npm rebuild node" .*, or use Node 26 or later\.\n$/);
});
