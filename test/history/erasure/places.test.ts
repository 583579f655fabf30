import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageFolder } from '../../../src/core/package-folder.ts';
import { type Doing, places } from '../../../src/history/erasure/places.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createSingleTestDatabase } from '../../support/server/database.ts';

const database = closeAfterAll(await createSingleTestDatabase());
test('every column that can hold a name or content has an erasure rule', async () => {
  const { rows } = await database.pool.query(`
    select c.relname || '.' || a.attname as "column"
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace
        and format_type(a.atttypid, null) ~ '^(text|character|bytea|json|jsonb|uuid)' order by 1`);
  const listed = Object.entries(places).flatMap(([table, columns]) =>
    Object.keys(columns).map((column) => `${table}.${column}`),
  );
  expect(listed.sort()).toEqual(rows.map(({ column }) => column).sort());
});

const words: Record<Doing, string> = {
  entry: 'is rewritten with the entries',
  text: 'the name or id in it is replaced',
  row: 'the row is deleted where it has the name or id',
  clear: 'becomes empty where it has the name or id',
  with: 'becomes empty where a text of the row has the name or id',
  sealed: 'is opened; the row is deleted where it has the name or id',
  all: 'goes, whatever it holds',
  stop: 'stops the erasure where it has the name or id',
  none: 'stays',
};

test('docs/erasure.md lists every rule', () => {
  const guide = readFileSync(join(packageFolder(), 'docs/erasure.md'), 'utf8');
  const rows = Object.entries(places).flatMap(([table, columns]) =>
    Object.entries(columns)
      .filter(([column]) => column !== 'tenant')
      .map(([column, [does, holds]]) => `| \`${table}.${column}\` | ${holds} | ${words[does]} |`),
  );
  const missing = rows.filter((row) => !guide.includes(row));
  expect(missing.join('\n')).toBe('');
});
