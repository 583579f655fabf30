import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const folder = join(import.meta.dirname, '../../docs/decisions');
const records = readdirSync(folder).filter((file) => file !== 'README.md');
const index = readFileSync(join(folder, 'README.md'), 'utf8');

test('each record has a number of its own, and its title begins with it', () => {
  const numbers = records.map((file) => /^(\d{4})-[a-z0-9-]+\.md$/.exec(file)?.[1]);
  expect(new Set(numbers).size).toBe(records.length);
  for (const [place, file] of records.entries()) {
    expect(readFileSync(join(folder, file), 'utf8').startsWith(`# ${numbers[place]}: `), file).toBe(true);
  }
});

test('the index lists every record once, in one line', () => {
  const listed = [...index.matchAll(/^- \[(\d{4})\]\((\1-[a-z0-9-]+\.md)\): .+\.$/gm)].map(([, , file]) => file);
  expect(listed.toSorted()).toEqual(records.toSorted());
});
