import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { launcher } from '../support/server/command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let cache: string;
let compiled: string;

beforeEach(() => {
  cache = temporaryFolder();
  compiled = join(cache, 'annals', 'compiled');
});

function version(environment: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [launcher, '--version'], {
    env: { PATH: process.env.PATH, XDG_CACHE_HOME: cache, ...environment },
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

test('compiled code is kept in a folder that only its user may write', () => {
  version();
  expect(readdirSync(compiled)).not.toEqual([]);
  expect(statSync(compiled).mode & 0o777).toBe(0o700);
});

test('a folder that others may write is not used', () => {
  version();
  rmSync(compiled, { recursive: true });
  version();
  const kept = readdirSync(compiled);
  expect(kept).not.toEqual([]);
  for (const name of kept) rmSync(join(compiled, name), { recursive: true });
  chmodSync(compiled, 0o777);
  version();
  expect(readdirSync(compiled)).toEqual([]);
});

test('without a folder that can be made the command runs all the same', () => {
  expect(version({ XDG_CACHE_HOME: '/dev/null' })).toMatch(/^\d+\.\d+\.\d+\n$/);
});
