import { expect, test } from 'vitest';
import { entryText } from '../../../src/history/entries/entry-text.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';
import { recordStatements } from '../../support/server/statements.ts';

// A single statement returns a page as one text, which Annals splits. These texts could break the split.
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** Maximum bytes of an entry's text for a single statement. */
const maxTextBytes = 256 * 1024;
const separator = '\u001e';
const digits = '{"a":{"before":12345678901234567890.1234567890123456789,"after":1e400}}';

const history = closeAfterAll(await openTestHistory('acme', () => now));
const statements = recordStatements(history.database.pool);

/** Records the changes, newest first, in a new tenant. */
async function recordFor(tenant: string, changes: readonly Partial<Change>[]): Promise<void> {
  const { db } = history.database;
  if (tenant !== 'acme') await createTenant(db, tenant);
  await createRecorder(db, tenant, () => now)(changes.map((change, place) => changeOf({ at: now - place, ...change })));
}

/** The entries of a page, and whether one statement read them. */
async function ask(tenant: string, q = '') {
  const query = parseQuery(q, changelogDialect);
  await history.findPage(tenant, query, { skip: 0, size: 1 });
  statements.length = 0;
  const { total, entries } = await history.findPage(tenant, query, { skip: 0, size: 100 });
  return { total, entries, inOne: statements.length === 1 };
}

/** The same from several statements, which read one row per entry. */
async function askInSeveral(tenant: string, q = '') {
  const query = parseQuery(q, changelogDialect);
  return (await history.findPage(tenant, query, { skip: 0, size: 100, withIdentity: true })).entries;
}

const texts = [
  'plain',
  '"\\/\b\f\n\r\t',
  '\u0001\u001d\u001f\u007f',
  '\u2028\u2029',
  'é\ud7ff\ue000',
  '😀\u{10ffff}',
  '=',
  '\\x1e',
  'null',
];

test('texts of all kinds read the same as one row per entry', async () => {
  const changes = texts.flatMap((text) => [
    { entityId: text, actor: text, entity: text, name: text, schemaVersion: text, paths: digits },
    { entityId: 'one', related: [{ entity: text, entityId: text }], name: '', schemaVersion: '' },
    { entityId: 'one' },
  ]);
  await recordFor('acme', changes);
  for (const q of ['', 'entity:order entityId:one']) {
    const { total, entries, inOne } = await ask('acme', q);
    expect(inOne).toBe(true);
    expect(entries).toHaveLength(total);
    expect(await askInSeveral('acme', q)).toMatchObject(entries);
  }
  const { entries } = await ask('acme');
  expect(entries.filter((_entry, place) => place % 3 === 0)).toEqual(
    texts.map((text, place) => ({
      ...{ at: now - 3 * place, type: 'update', entity: text, entityId: text, name: text, schemaVersion: text },
      ...{ actor: text, related: null, paths: digits },
    })),
  );
  expect(entries[1]).toMatchObject({ name: '', schemaVersion: '' });
  expect(entries[2]).toMatchObject({ name: null, schemaVersion: null, related: null });
});

test.each([
  ['id', { entityId: `one${separator}` }],
  ['name', { name: separator.repeat(8) }],
  ['schema version', { schemaVersion: separator }],
])('a page with the separator of the text in an entry %s is read in several statements', async (of, change) => {
  const tenant = `separator${of.replace(' ', '')}`;
  await recordFor(tenant, [{ entityId: 'first' }, change, { entityId: 'last' }]);
  const { total, entries, inOne } = await ask(tenant);
  expect({ total, inOne }).toEqual({ total: 3, inOne: false });
  expect(entries[1]).toMatchObject(change);
  expect(entries.map(({ entityId }) => entityId)).toEqual(['first', entries[1]?.entityId, 'last']);
});

test.each([0, 1])('one statement reads texts up to the maximum: %i bytes over it', async (more) => {
  const tenant = `long${more}`;
  const related = '[{"entity":"order","entityId":"é"}]';
  const rest = maxTextBytes - Buffer.byteLength(related) - '{"a":{"after":""}}'.length + more;
  const paths = `{"a":{"after":"${'x'.repeat(rest)}"}}`;
  await recordFor(tenant, [{ related: [{ entity: 'order', entityId: 'é' }], paths }, {}]);
  const { entries, inOne } = await ask(tenant);
  expect(inOne).toBe(more === 0);
  expect(entries.map((entry) => entry.paths === paths)).toEqual([true, false]);
});

test('a page without entries has its total', async () => {
  await recordFor('short', [{}]);
  const query = parseQuery('', changelogDialect);
  expect(await history.findPage('short', query, { skip: 5, size: 5 })).toEqual({
    plan: 'tallies',
    total: 1,
    entries: [],
  });
  expect(
    await history.findPage('short', parseQuery('entity:order entityId:none', changelogDialect), { skip: 0, size: 5 }),
  ).toEqual({ plan: 'documents', total: 0, entries: [] });
});

test('the text of an entry takes any number and length of names', () => {
  const entry = {
    at: now,
    type: 'update',
    entityId: '"1"',
    name: null,
    schemaVersion: 'é',
    related: null,
    paths: '{}',
  };
  const names = [...Array.from({ length: 1_001 }, (_none, place) => `"${place}"`), 'x'.repeat(100), '"'.repeat(101)];
  for (const name of [...names, ...names]) {
    const text = `{"at":"${new Date(now).toISOString()}","type":"update","entity":${JSON.stringify(name)},"entityId":"\\"1\\"","paths":{},"schemaVersion":"é","actor":${JSON.stringify(name)},"related":[]}`;
    expect(entryText({ ...entry, entity: name, actor: name })).toBe(text);
  }
});
