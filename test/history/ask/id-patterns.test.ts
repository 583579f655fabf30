import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { uuidOf } from '../../../src/core/text-hash.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { maxIds, tryOnIds } from '../../../src/history/search/plan/id-patterns.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { documentSatisfies } from '../../../src/history/search/predicate.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { QueryError } from '../../../src/query/query-error.ts';
import { RegexBudget } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { matches } from '../../support/oracle/query-evaluator.ts';
import { openTestHistory } from '../../support/server/history.ts';
import { recordStatements } from '../../support/server/statements.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** Exceeds one fetch. */
const documents = 5_100;

const changes: Omit<Change, 'identity'>[] = Array.from({ length: documents }, (_none, place) => ({
  at: now - 1 - (place % 3_000),
  type: 'update',
  entity: place % 4 === 0 ? 'order' : 'product',
  entityId: `document-${place}`,
  actor: `actor ${place % 3}`,
  related: place % 10 === 0 ? [{ entity: 'group', entityId: `group ${place % 70}` }] : [],
  paths: '{}',
}));

/** Changes of a tenant with long ids, except for a few. */
const someLong: typeof changes = [
  ...changes.slice(0, 200),
  ...Array.from({ length: 1_000 }, (_none, place) => ({
    at: now - 5,
    type: 'update' as const,
    entity: 'long',
    entityId: 'x'.repeat(990) + place,
    actor: 'long',
    related: [{ entity: 'group', entityId: 'x'.repeat(990) + place }],
    paths: `{"${'x'.repeat(990)}${place}":{"after":1}}`,
  })),
];

const history = closeAfterAll(await openTestHistory(tenant, () => now));
const { database, regexes, findPage } = history;
await createTenant(database.db, 'long');
for (const [name, all] of [
  [tenant, changes],
  ['long', someLong],
] as const) {
  const record = createRecorder(database.db, name, () => now);
  for (let first = 0; first < all.length; first += 2_000) {
    await record(all.slice(first, first + 2_000).map((change) => ({ ...change, identity: randomBytes(16) })));
  }
}
const statements = recordStatements(database.pool);

const keyOf = ({ at, entity, entityId, actor }: Pick<Change, 'at' | 'entity' | 'entityId'> & { actor?: string }) =>
  JSON.stringify([at, entity, entityId, actor]);

test.each([
  'entity:* entityId:~.',
  'entity:* entityId:~"^nothing$"',
  'entity:* entityId:~77',
  'entity:* entityId:~77|8$',
  'entity:* entityId:~"(?m)77|8$"',
  'entity:* entityId:~7.$',
  'entity:* entityId:~ment-7[0-4]',
  'entity:* entityId:~[0-8]$',
  'entity:* entityId:~"(?m)[0-8]$"',
  'entity:* entityId:~"\\b(?m)[^3]$" entityId:~7',
  'entity:* entityId:~(?i)MENT-7[0-4]',
  'entity:* entityId:~7 entityId:~9$',
  'entity:product entityId:~^document-1 actor:actor 1',
  'related.entityId:~7',
  'related.entityId:~"(?m)[7]$"',
  'related:elemMatch(entity:group entityId:~[1-6])',
  'related:elemMatch(entity:group entityId:~"(?m)^group [1-6]")',
  'compoundLogicalQuery:((entity:order entityId:~99) OR (related.entityId:~" 7$") OR (actor:actor 2))',
  'compoundLogicalQuery:((entity:order entityId:~[1-9]) OR (entity:product entityId:~[13579]$))',
])('a regular expression finds what an evaluator finds, and its ids are never passed on all at once: %s', async (q) => {
  statements.length = 0;
  const query = parseQuery(q, changelogDialect);
  const matching = changes.filter((change) => matches(query, change, now));
  const keys = new Set(matching.map(keyOf));
  for (const skip of [0, Math.max(0, matching.length - 50)]) {
    const { total, entries } = await findPage(tenant, query, { skip, size: 50 });
    expect({ total, entries: entries.length }).toEqual({
      total: matching.length,
      entries: Math.min(50, matching.length),
    });
    expect(entries.filter((entry) => !keys.has(keyOf(entry)))).toEqual([]);
  }
  for (const { values } of statements) {
    for (const value of values) if (Array.isArray(value)) expect(value.length).toBeLessThan(1_000);
  }
});

test('only ids of entries that can satisfy the query are tested', async () => {
  // Size times characters: the ids of `long` alone would exceed the budget.
  const source = `(${'y?'.repeat(600)})z`;
  const total = async (q: string) =>
    (await findPage('long', parseQuery(q, changelogDialect), { skip: 0, size: 1 })).total;
  expect(await total(`entity:order entityId:~"${source}" occurredAt:>"2026-09-01T00:00:00Z"`)).toBe(0);
  await expect(total(`entity:* entityId:~"${source}"`)).rejects.toThrow(QueryError);
});

describe('with a fixed query only ids of the entries it shows are tested', () => {
  const source = `(${'y?'.repeat(600)})z`;
  const ask = async (fixed: string, q: string) => {
    const restriction = readRestriction([{ query: fixed, hide: [] }]);
    return (await findPage('long', parseQuery(q, changelogDialect), { skip: 0, size: 1, restriction })).total;
  };

  test.each([
    ['of documents', `entity:* entityId:~"${source}"`],
    ['of related documents', `related.entityId:~"${source}"`],
    ['that are paths', `path:~"${source}"`],
  ])('%s', async (_title, q) => {
    // The ids, related ids and paths of `long` alone would exceed the budget.
    for (const fixed of ['actor:actor 1', 'entity:* entityId:document-4', 'related.entityId:group 7', 'entity:order'])
      expect({ fixed, total: await ask(fixed, q) }).toEqual({ fixed, total: 0 });
    for (const fixed of ['actor:long', 'entity:* entityId:xx*', 'entity:*'])
      await expect(ask(fixed, q), fixed).rejects.toThrow(QueryError);
  });

  test.each([
    ['actor:actor 1', 'entity:* entityId:~"(?i)DOCUMENT-1[0-3]"'],
    ['entity:order', 'related.entityId:~"[17]$"'],
    ['entity:* entityId:(document-40, document-70)', 'entity:* entityId:~[4]'],
    [
      'related.entityId:group 7',
      'compoundLogicalQuery:((related.entityId:~"(?m)7$") OR (entity:* entityId:~"9[0-9]"))',
    ],
    ['compoundLogicalQuery:((entity:* entityId:document-4*) OR (actor:actor 2))', 'entity:* entityId:~"(?m)[^3]$"'],
  ])('and found: %s, %s', async (fixed, q) => {
    const both = parseQuery(`${fixed} ${q}`, changelogDialect);
    expect(await ask(fixed, q)).toBe(someLong.filter((change) => matches(both, change, now)).length);
  });
});

test('a regular expression is tested on up to 2,000,000 ids; more are an error', async () => {
  const patterns = [{ of: 'document' as const, source: 'b', position: 7 }];
  const tried = async (count: number, batch: number) => {
    const ids = Array.from({ length: batch }, () => 'a');
    async function* batches() {
      for (let yielded = 0; yielded < count; yielded += batch) yield ids;
    }
    return await tryOnIds(patterns, batches, { regexes, budget: new RegexBudget() });
  };
  expect((await tried(maxIds, 50_000)).get('document', 'b')).toMatchObject({ isIn: true, count: 0 });
  await expect(tried(maxIds + 1, maxIds + 1)).rejects.toMatchObject({
    position: 7,
    expected: expect.stringContaining('2,000,000'),
  });
});

test('many hashes are looked up differently from few, with the same result', async () => {
  const ids = Array.from({ length: 500 }, (_none, place) => `document-${place * 10}`);
  const hashes = `{${ids.map(uuidOf).join(',')}}`;
  const count = async (isIn: boolean, idCount: number) => {
    const condition = documentSatisfies({ kind: 'document', matcher: { kind: 'ids', isIn, count: idCount, hashes } });
    const { rows } = await sql<{ total: number }>`
      select count(*) as total from change_entry e where e.tenant = ${tenant} and ${condition}`.execute(database.db);
    return rows[0]?.total;
  };
  for (const idCount of [500, 300_000]) {
    expect([await count(true, idCount), await count(false, idCount)]).toEqual([500, changes.length - 500]);
  }
});
