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

test.each(records)('%s has a title, context, decision and consequences, and stays short', (file) => {
  const text = readFileSync(join(folder, file), 'utf8');
  expect(text).toMatch(/^# [A-Z].+\n\n/);
  // Records that still begin with a summary of five points are rewritten one by one.
  const [, summary = ''] = /^# .+\n\n((?:- .+\n(?: {2}.+\n)*)+)\n/.exec(text) ?? [];
  const headings = [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  if (summary === '') expect(headings).toEqual(['Context', 'Decision', 'Consequences']);
  else expect(summary.match(/^- /gm)).toHaveLength(5);
  expect(text.split('\n').length).toBeLessThan(100);
});
