import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { writeOnce } from '../../src/postgres/write-once.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: string;

beforeEach(async () => {
  folder = temporaryFolder();
});

test('of several that write a file once, one succeeds and all get its content', async () => {
  const path = join(folder, 'once');
  const contents = await Promise.all(['a', 'b', 'c', 'd'].map((content) => writeOnce(path, content)));
  expect(new Set(contents)).toEqual(new Set([await readFile(path, 'utf8')]));
  expect(await readdir(folder)).toEqual(['once']);
});
