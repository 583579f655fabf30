import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageFolder } from '../../../src/core/package-folder.ts';

const folder = join(packageFolder(), 'sql');

test('each routine begins with what it is for, and has no line of more than 120 characters', async () => {
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.sql'));
  expect(files.length).toBeGreaterThan(50);
  const faults: string[] = [];
  for (const file of files) {
    // A routine that an index uses is never replaced, so its text stays as it is.
    if (file.includes('indexed/')) continue;
    const lines = (await readFile(join(folder, file), 'utf8')).split('\n');
    if (!lines[0]?.startsWith('-- ')) faults.push(`${file} has no head`);
    for (const [index, line] of lines.entries()) if (line.length > 120) faults.push(`${file}:${index + 1}`);
  }
  expect(faults).toEqual([]);
});
