import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { makeProofKey } from '../../src/proof/log/signer.ts';
import { launcher, startAnnals } from '../support/server/command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();

/**
 * A command that runs until it is stopped, and needs no database. Each has a key of its own: only one may run with a
 * key.
 */
async function witness(): Promise<string[]> {
  const own = await mkdtemp(join(folder, 'witness-'));
  const [key, logs] = [join(own, 'key'), join(own, 'logs')];
  makeProofKey(key);
  await writeFile(logs, '');
  return ['witness', '--name', 'example.org/w', '--key', key, '--logs', logs, '--port', '0'];
}

// The two ways of an older Node: newer ones of them can become another program, the oldest have to run one.
describe.each(['execve', 'spawn'])('by %s', (way) => {
  test('the exit code, stdout and stderr are passed on', async () => {
    const unknown = await startAnnals(['sevre'], { ANNALS_LAUNCHER_WAY: way }).ended;
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toContain('unknown command sevre');
  });
});

// By execve the command gets them itself, and serve.test.ts has SIGTERM.
test.concurrent.each([
  ['execve', 'SIGHUP'],
  ['execve', 'SIGINT'],
  ['spawn', 'SIGHUP'],
  ['spawn', 'SIGINT'],
  ['spawn', 'SIGTERM'],
] as const)('by %s, %s ends a command in an orderly way', async (way, signal) => {
  const command = startAnnals(await witness(), { LOG_LEVEL: 'warn', ANNALS_LAUNCHER_WAY: way });
  const line = await command.firstLine;
  command.process.kill(signal);
  expect(await command.ended).toEqual({ code: 0, signal: null, stdout: `${line}\n`, stderr: '' });
});

test('a command whose launcher was killed ends by itself', async () => {
  const command = startAnnals(await witness(), { ANNALS_LAUNCHER_WAY: 'spawn' });
  await command.firstLine;
  command.process.kill('SIGKILL');
  // The streams close only when the command itself has ended: it holds them too.
  expect((await command.ended).signal).toBe('SIGKILL');
});

test('without the Node of the npm package it says what to do', async () => {
  await copyFile(launcher, join(folder, 'annals.js'));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const child = spawn(process.execPath, [join(folder, 'annals.js'), '--help'], {
    env: { ANNALS_LAUNCHER_WAY: 'spawn' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^annals: needs Node 26; .* run "npm rebuild node" .*, or use Node 26 or later\.\n$/);
});
