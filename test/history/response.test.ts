import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import type { Change } from '../../src/recording/change.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestServer } from '../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const day = 86_400_000;

const tokens = new Map<string, string>();

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));

interface History {
  items: { at: string; type: string; entityId: string }[];
  page: number;
  size: number;
  totalElements: number;
  totalPages: number;
}

async function textOf(tenant: string, parameters: Record<string, string> = {}): Promise<string> {
  const token = tokens.get(tenant) ?? (await server.token(tenant));
  tokens.set(tenant, token);
  const response = await server.call(`/changelog/${tenant}/changelogs?${new URLSearchParams(parameters)}`, { token });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  return await response.text();
}

async function ask(tenant: string, parameters: Record<string, string> = {}): Promise<History> {
  return JSON.parse(await textOf(tenant, parameters));
}

async function idsOf(tenant: string, q: string): Promise<string[]> {
  return (await ask(tenant, { q, size: '100' })).items.map((item) => item.entityId);
}

function change(entityId: string, options: Partial<Change> = {}): Change {
  return {
    identity: randomBytes(16),
    at: now - day,
    type: 'update',
    entity: 'order',
    entityId,
    actor: 'Jane Doe',
    related: [],
    paths: '{}',
    ...options,
  };
}

async function record(tenant: string, ...changes: Change[]): Promise<void> {
  await server.createTenant(tenant);
  const outcomes = await createRecorder(server.context.db, tenant, () => now)(changes);
  expect(outcomes).toEqual(changes.map(() => 'recorded'));
}

describe('the body, to the byte', () => {
  test('with every member of an entry', async () => {
    await record(
      'full',
      change('p-1', {
        type: 'create',
        entity: 'product',
        name: 'Lamp "é😀"\n',
        schemaVersion: '1.0',
        actor: 'O\'Brien "\\"',
        related: [
          { entity: 'group', entityId: 'g\t1' },
          { entity: 'group', entityId: 'g\t1' },
          { entity: 'customer', entityId: 'é' },
        ],
        paths:
          '{"a":{"before":9007199254740993,"after":1.10},"b\\u00e9":{"after":-0.0E+5},"a":{"after":"\\u0041\\ud800"}}',
      }),
    );
    expect(await textOf('full')).toBe(
      '{"items":[{"at":"2026-09-14T10:11:12.345Z","type":"create","entity":"product","entityId":"p-1",' +
        '"name":"Lamp \\"é😀\\"\\n",' +
        '"paths":{"a":{"before":9007199254740993,"after":1.10},"b\\u00e9":{"after":-0.0E+5},"a":{"after":"\\u0041\\ud800"}},' +
        '"schemaVersion":"1.0","actor":"O\'Brien \\"\\\\\\"",' +
        '"related":[{"entity":"group","entityId":"g\\t1"},{"entity":"group","entityId":"g\\t1"},' +
        '{"entity":"customer","entityId":"é"}]}],"page":1,"size":20,"totalElements":1,"totalPages":1}',
    );
  });

  test('name and schemaVersion are omitted where unknown; paths and related are present even if empty', async () => {
    await record('bare', change('1', { at: 0, type: 'delete' }));
    expect(await textOf('bare', { q: 'occurredAt:>="1970-01-01T00:00:00Z"' })).toBe(
      '{"items":[{"at":"1970-01-01T00:00:00.000Z","type":"delete","entity":"order","entityId":"1","paths":{},' +
        '"actor":"Jane Doe","related":[]}],"page":1,"size":20,"totalElements":1,"totalPages":1}',
    );
  });

  test('an empty name and an empty schemaVersion are present', async () => {
    await record('blank', change('', { entity: '', actor: '', name: '', schemaVersion: '' }));
    expect(await textOf('blank', { q: 'actor:"" entity:"" entityId:""' })).toContain(
      '"entity":"","entityId":"","name":"","paths":{},"schemaVersion":"","actor":"","related":[]',
    );
  });

  test('without entries', async () => {
    expect(await textOf('full', { q: 'entity:nothing' })).toBe(
      '{"items":[],"page":1,"size":20,"totalElements":0,"totalPages":0}',
    );
  });
});

describe('order', () => {
  const at = now - day;

  test('newest first, within a millisecond last recorded first, across batches and within one', async () => {
    await record('order', change('1', { at }), change('2', { at: at + 1 }), change('3', { at }));
    await record('order', change('4', { at }), change('5', { at: at - 1 }), change('6', { at }));
    await foldHistory(server.context.db, 'order');
    await record('order', change('7', { at: at + 1 }), change('8', { at }));
    const newestFirst = ['7', '2', '8', '6', '4', '3', '1', '5'];
    for (const q of ['', 'entity:order', 'actor:Jane*', 'type:update actor:Jane Doe', 'entity:order entityId:*']) {
      expect(await idsOf('order', q), q).toEqual(newestFirst);
    }
    const alone: string[] = [];
    for (const page of newestFirst.keys()) {
      const { items } = await ask('order', { page: String(page + 1), size: '1' });
      alone.push(...items.map((item) => item.entityId));
    }
    expect(alone).toEqual(newestFirst);
  });
});

describe('pages', () => {
  beforeAll(async () => {
    await record('paged', ...Array.from({ length: 201 }, (_, index) => change(String(index), { at: now - index })));
  });

  test.each([
    { size: 100, totalPages: 3 },
    { size: 67, totalPages: 3 },
    { size: 20, totalPages: 11 },
    { size: 1, totalPages: 201 },
  ])('totalPages is totalElements by size $size, rounded up', async ({ size, totalPages }) => {
    expect(await ask('paged', { size: String(size) })).toMatchObject({ page: 1, size, totalElements: 201, totalPages });
  });

  test('the last page has the rest, and the next one no items but the same totals', async () => {
    const last = await ask('paged', { page: '3', size: '100' });
    expect(last.items.map((item) => item.entityId)).toEqual(['200']);
    expect(await ask('paged', { page: '4', size: '100' })).toEqual({
      items: [],
      page: 4,
      size: 100,
      totalElements: 201,
      totalPages: 3,
    });
  });

  test.each(['', 'entity:order', 'actor:~Doe', 'entity:order entityId:*', 'entity:order entityId:5'])(
    'a page whose first entry would be beyond 2^31 has the true totals: %s',
    async (q) => {
      const { totalElements, totalPages } = await ask('paged', { q, size: '100' });
      expect(await ask('paged', { q, page: '2147483647', size: '100' })).toEqual({
        items: [],
        page: 2_147_483_647,
        size: 100,
        totalElements,
        totalPages,
      });
      expect(totalElements).toBe(q.endsWith('5') ? 1 : 201);
    },
  );
});

describe('the window', () => {
  const edge = now - 30 * day;
  const ids = { old: edge - 40 * day, before: edge - 1, first: edge, after: edge + 1, recent: now, future: now + day };
  const time = (at: number) => `"${new Date(at).toISOString()}"`;
  const everything = ['future', 'recent', 'after', 'first', 'before', 'old'];
  const lastMonth = everything.slice(0, 4);

  beforeAll(async () => {
    await record('window', ...Object.entries(ids).map(([id, at]) => change(id, { at })));
  });

  test.each([
    ['no occurredAt', 'entity:order', lastMonth],
    ['no query', '', lastMonth],
    ['a from-bound at the top', `occurredAt:>${time(edge - 41 * day)}`, everything],
    ['one that is itself inside', `occurredAt:>=${time(ids.old)}`, everything],
    ['one that is not', `occurredAt:>${time(ids.old)}`, everything.slice(0, 5)],
    ['one within the last 30 days', `occurredAt:>${time(edge)}`, everything.slice(0, 3)],
    ['a from-bound in an AND', `compoundLogicalQuery:((occurredAt:>=${time(ids.old)}) AND (type:update))`, everything],
    ['a range at the top', `occurredAt:(>${time(ids.old - 1)} AND <${time(ids.first)})`, ['before', 'old']],
    ['a range whose end is before its start', `occurredAt:(>${time(now)} AND <${time(edge)})`, []],
    ['only a to-bound', `occurredAt:<${time(ids.recent)}`, ['after', 'first']],
    ['only a to-bound before the window', `occurredAt:<=${time(ids.before)}`, []],
    [
      'a from-bound in one arm of an OR',
      `compoundLogicalQuery:((occurredAt:>=${time(ids.old)}) OR (entity:order))`,
      lastMonth,
    ],
    [
      'a from-bound in every arm of an OR',
      `compoundLogicalQuery:((occurredAt:>=${time(ids.old)}) OR (occurredAt:>=${time(now)}))`,
      lastMonth,
    ],
    [
      'a from-bound in an AND in an AND',
      `compoundLogicalQuery:(((occurredAt:>=${time(ids.old)}) AND (type:update)) AND (entity:order))`,
      everything,
    ],
    ['a group with a single operand', `compoundLogicalQuery:((occurredAt:>=${time(ids.old)}))`, everything],
    [
      'a from-bound at the top and another in an arm of an OR',
      `occurredAt:>=${time(ids.old)} compoundLogicalQuery:((occurredAt:>${time(now)}) OR (entity:order))`,
      everything,
    ],
  ])('%s: items and totals alike, with tallies, documents and both', async (_case, q, expectedIds) => {
    const documents = `${q} entity:order entityId:*`.trim();
    const both = `${q} compoundLogicalQuery:((entity:order entityId:nobody) OR (actor:Jane Doe))`.trim();
    for (const query of [q, `${q} actor:Jane*`.trim(), documents, both]) {
      const { items, totalElements } = await ask('window', { q: query });
      expect({ query, ids: items.map((item) => item.entityId) }).toEqual({ query, ids: expectedIds });
      expect(totalElements).toBe(expectedIds.length);
    }
  });

  test('times are compared at full precision', async () => {
    const fraction = (nanoseconds: string) => new Date(edge).toISOString().replace('Z', `${nanoseconds}Z`);
    expect(await idsOf('window', `occurredAt:>="${fraction('000001')}"`)).toEqual(everything.slice(0, 3));
    expect(await idsOf('window', `occurredAt:>"${fraction('000001')}"`)).toEqual(everything.slice(0, 3));
    expect(await idsOf('window', `occurredAt:(>=${time(edge)} AND <"${fraction('000001')}")`)).toEqual(['first']);
    expect(await idsOf('window', `occurredAt:(>=${time(edge)} AND <${time(edge)})`)).toEqual([]);
  });
});

test('an unknown entity type is no error', async () => {
  expect(await ask('full', { q: 'entity:spaceship' })).toMatchObject({ items: [], totalElements: 0 });
});

test('tenants are isolated: the responses of one do not depend on the other', async () => {
  const shared = [change('1', { related: [{ entity: 'group', entityId: 'g' }] }), change('2', { actor: 'system' })];
  await record('left', ...shared);
  const queries = ['', 'entity:*', 'actor:~.', 'entity:* entityId:~.', 'related.entityId:*', 'related.entity:~.'];
  const before = await Promise.all(queries.map((q) => textOf('left', { q })));
  await record(
    'right',
    ...shared,
    change('3', { entity: 'quote', actor: 'Eve', related: [{ entity: 'x', entityId: 'y' }] }),
  );
  await foldHistory(server.context.db, 'right');
  expect(await Promise.all(queries.map((q) => textOf('left', { q })))).toEqual(before);
  expect((await ask('right')).totalElements).toBe(3);
});
