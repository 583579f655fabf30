import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const folder = join(import.meta.dirname, '../../docs/decisions');
const records = readdirSync(folder).filter((file) => file !== 'README.md');
const index = readFileSync(join(folder, 'README.md'), 'utf8');

test('the index lists every record once, in one line', () => {
  const listed = [...index.matchAll(/^- \[([a-z-]+)\]\((\1\.md)\): .+\.$/gm)].map(([, , file]) => file);
  expect(listed.toSorted()).toEqual(records.toSorted());
});

test.each(records)('%s begins with a title and a summary of five points, and stays short', (file) => {
  const text = readFileSync(join(folder, file), 'utf8');
  const [, summary = ''] = /^# [A-Z].+\n\n((?:- .+\n(?: {2}.+\n)*)+)\n/.exec(text) ?? [];
  expect(summary.match(/^- /gm)).toHaveLength(5);
  expect(text.split('\n').length).toBeLessThan(100);
});
