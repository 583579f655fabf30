import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { annals, launcherOfRun } from '../support/server/command.ts';
import { createTestDatabase } from '../support/server/database.ts';
import { testSecretKeys } from '../support/server/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** More than a pipe takes before somebody reads, which is 64 KiB. */
const minLength = 80_000;
/** Longer than a process that does not wait for its reader lives on. */
const pause = 2_000;

const database = closeAfterAll(await createTestDatabase());
const key = testSecretKeys.map((secret) => Buffer.from(secret).toString('base64')).join(',');
const environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: key, LOG_LEVEL: 'fatal' };
const folder = temporaryFolder();
const tables = Array.from({ length: 400 }, (_, n) => [`public.t${n}`, { entity: `t${n}`, mask: ['x'.repeat(200)] }]);
await writeFile(
  join(folder, 'mapping.json'),
  JSON.stringify({ version: 1, tenant: { value: 'acme' }, tables: Object.fromEntries(tables) }),
);
await createTenant(database.db, 'acme');
await database.pool.query(
  `insert into oauth_client (tenant, client_id, name, scopes, secret_hash)
     select 'acme', 'acme.' || n, repeat('x', 150), '{changelog.changelog_read}', '\\x00' from generate_series(1, 400) as n`,
);

const commands = {
  outbox: () => ['outbox', '--mapping', join(folder, 'mapping.json')],
  'mapping check': () => ['mapping', 'check', join(folder, 'mapping.json')],
  'client list': () => ['client', 'list', '--tenant', 'acme'],
};

function start(args: string[], stdout: number) {
  const child = spawn(process.execPath, [launcherOfRun(), ...args], {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', stdout, 'pipe'],
  });
  closeSync(stdout);
  const ended = Promise.all([once(child, 'close'), text(child.stderr ?? Readable.from([]))]);
  return { ended: ended.then(([[code], stderr]) => ({ code, stderr })) };
}

/** A pipe of the system, which holds less than the sockets that Node gives a child. */
async function openPipe() {
  const path = join(folder, 'pipe');
  await rm(path, { force: true });
  await promisify(execFile)('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { reader, writer: openSync(path, 'w') };
}

describe.each(Object.entries(commands))('%s', (_name, args) => {
  test('a reader that is slow gets every byte', async () => {
    const expected = (await annals(args(), environment)).stdout;
    expect(expected.length).toBeGreaterThan(minLength);
    const { reader, writer } = await openPipe();
    const { ended } = start(args(), writer);
    await Promise.race([ended, sleep(pause)]);
    expect(await text(new Socket({ fd: reader, readable: true, writable: false }))).toBe(expected);
    expect(await ended).toMatchObject({ code: 0 });
  });

  test('where the reader has gone, the exit code is that of SIGPIPE', async () => {
    const { reader, writer } = await openPipe();
    closeSync(reader);
    const { code, stderr } = await start(args(), writer).ended;
    expect(code).toBe(141);
    expect(stderr).not.toContain('annals: stdout');
  });

  test.skipIf(process.platform !== 'linux')('where the disk is full, it fails and says so', async () => {
    const { code, stderr } = await start(args(), openSync('/dev/full', 'w')).ended;
    expect(code).toBe(1);
    expect(stderr).toContain('annals: stdout cannot be written: ENOSPC');
  });
});

test('a file that takes only the beginning is a failure', async () => {
  const file = join(folder, 'part');
  const child = spawn(
    'sh',
    ['-c', 'ulimit -f 64; exec "$@" > "$FILE"', 'sh', process.execPath, launcherOfRun(), ...commands.outbox()],
    { env: { PATH: process.env.PATH, FILE: file }, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const [[code], stderr] = await Promise.all([once(child, 'close'), text(child.stderr)]);
  expect((await stat(file)).size).toBeGreaterThan(0);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('stdout cannot be written: EFBIG') });
});

test('a process that gets SIGTERM exits with 1 and does not wait for its reader', async () => {
  const { reader, writer } = await openPipe();
  const child = spawn(process.execPath, [launcherOfRun(), ...commands.outbox()], {
    env: { PATH: process.env.PATH },
    stdio: ['ignore', writer, 'pipe'],
  });
  closeSync(writer);
  // The first bytes are there: the command has printed everything.
  const socket = new Socket({ fd: reader, readable: true, writable: false });
  await once(socket, 'readable');
  child.kill('SIGTERM');
  expect((await once(child, 'close'))[0]).toBe(1);
  socket.destroy();
});

test('nothing but cli/output.ts writes to the streams of the process', async () => {
  const root = join(import.meta.dirname, '..', '..', 'src');
  const writers: string[] = [];
  for (const file of await readdir(root, { recursive: true })) {
    if (!file.endsWith('.ts')) continue;
    const code = (await readFile(join(root, file), 'utf8')).replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '');
    if (/process\.std(?:out|err)|\bconsole\.\w+\(|std(?:out|err)\b.*= process;/.test(code)) writers.push(file);
  }
  expect(writers).toEqual([join('cli', 'output.ts')]);
});
