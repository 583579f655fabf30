import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const folder = join(import.meta.dirname, '../../docs/decisions');
const records = readdirSync(folder).filter((file) => file !== 'README.md');
const index = readFileSync(join(folder, 'README.md'), 'utf8');

test('the index lists every record once', () => {
  const listed = [...index.matchAll(/\[([a-z-]+)\]\((\1\.md)\)/g)].map(([, , file]) => file);
  expect(listed.toSorted()).toEqual(records.toSorted());
});

test.each(records)('%s has a title, context, decision and consequences, and stays short', (file) => {
  const text = readFileSync(join(folder, file), 'utf8');
  expect(text).toMatch(/^# [A-Z].+\n\n/);
  const headings = [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  expect(headings).toEqual(['Context', 'Decision', 'Consequences']);
  expect(text.split('\n').length).toBeLessThan(100);
});
