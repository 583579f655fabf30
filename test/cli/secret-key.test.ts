import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { keptSecretKeys } from '../../src/cli/open-database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: string;

beforeEach(async () => {
  folder = temporaryFolder();
});

test('the key of a data folder is made once, readable by its owner alone, and may become a list', async () => {
  const [first, second] = await Promise.all([keptSecretKeys(folder), keptSecretKeys(folder)]);
  expect(first).toHaveLength(1);
  expect(second).toEqual(first);
  const path = join(folder, 'secret.key');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const newer = Buffer.alloc(32, 1).toString('base64');
  await writeFile(path, `${newer},${await readFile(path, 'utf8')}`);
  expect(await keptSecretKeys(folder)).toEqual([Buffer.alloc(32, 1), ...first]);
});

test('a damaged key is never replaced by a new one, which would open nothing', async () => {
  await writeFile(join(folder, 'secret.key'), 'half a k');
  await expect(keptSecretKeys(folder)).rejects.toThrow(/secret\.key does not hold a key of 32 bytes in base64/);
  await writeFile(join(folder, 'secret.key'), '');
  await expect(keptSecretKeys(folder)).rejects.toThrow(/secret\.key does not hold a key/);
});
