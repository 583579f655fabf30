import { expect, test } from 'vitest';
import { Annals } from '../../clients/typescript/src/index.ts';
import {
  actor,
  and,
  changed,
  changeType,
  entity,
  glob,
  occurredAt,
  or,
  path,
  value,
} from '../../clients/typescript/src/query/index.ts';
import { changeOfDocuments } from '../../src/recording/change.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestServer } from '../support/server/server.ts';
import { collect } from './collect.ts';

const server = closeAfterAll(await startTestServer());
const annals = new Annals({
  baseUrl: server.baseUrl,
  ...(await server.createClient('acme', { name: 'Jane "J" Doe' })),
});
await annals.customEntities.put('SHELF', { name: { en: 'Shelf' } });
for (let slots = 1; slots <= 7; slots += 1) await annals.instances('SHELF').put(`s-${slots}`, { slots, name: 'Aisle' });

const mine = and(entity('SHELF'), changeType('create'), actor('Jane "J" Doe'));

test('the change history is a page when awaited, and all entries when iterated', async () => {
  const page = await annals.history.list({ q: mine, size: 3 });
  expect(page).toMatchObject({ page: 1, size: 3, totalElements: 7, totalPages: 3 });
  expect(page.items.map(({ entityId }) => entityId)).toEqual(['s-7', 's-6', 's-5']);
  const entries = await collect(annals.history.list({ q: String(mine), size: 3 }));
  expect(entries.map(({ entityId }) => entityId)).toEqual(['s-7', 's-6', 's-5', 's-4', 's-3', 's-2', 's-1']);
  const second = await page.nextPage();
  const third = await second?.nextPage();
  expect(third?.items.map(({ entityId }) => entityId)).toEqual(['s-1']);
  expect(await third?.nextPage()).toBeUndefined();
  expect((await third?.previousPage())?.items).toEqual(second?.items);
  expect(await page.previousPage()).toBeUndefined();
});

test('what is read of the history beside its list', async () => {
  const { totalElements, buckets, after } = await annals.history.histogram({ q: mine, buckets: 1 });
  expect({ totalElements, counted: buckets.reduce((sum, { create }) => sum + create, after) }).toEqual({
    totalElements: 7,
    counted: 7,
  });
  expect(await annals.history.facets({ q: mine, field: 'type', size: 1 })).toMatchObject({
    values: [{ value: 'create', count: 7 }],
    others: 0,
  });
  expect(await annals.history.names({ field: 'entity', prefix: 'shel' })).toEqual({
    field: 'entity',
    values: ['SHELF'],
  });
  const all = await annals.history.list({ q: changed({ path: 'id', before: value.missing(), after: glob('s-*') }) });
  expect(all.totalElements).toBe(7);
  expect((await annals.history.list({ q: and(mine, path('id')) })).totalElements).toBe(7);
  expect(await annals.history.facets({ q: and(mine, path('id')), field: 'path', size: 1 })).toMatchObject({
    values: [{ count: 7 }],
  });
  expect(await annals.history.names({ field: 'path', entity: 'SHELF', prefix: 'ID' })).toEqual({
    field: 'path',
    values: ['id'],
  });
  const { values: shelves } = await annals.history.names({ field: 'document', entity: 'SHELF', prefix: 's-', size: 1 });
  expect(shelves).toEqual([{ entity: 'SHELF', entityId: 's-7', name: 'Aisle', at: expect.any(String) }]);
  const before = { field: 'document', entity: 'SHELF', changedBefore: new Date(0) } as const;
  expect(await annals.history.names(before)).toEqual({ field: 'document', values: [] });
  expect((await annals.history.recorders()).recorders).toContainEqual(expect.objectContaining({ way: 'service' }));
  const { items } = await annals.history.list({ q: mine, size: 1, ref: true, valueLimit: 256 });
  const [newest] = items;
  expect(await annals.history.entry(newest?.ref ?? '', { context: true })).toMatchObject({ entityId: 's-7' });
  const of = { entity: 'SHELF', entityId: 's-7' };
  const made = await annals.history.document({ ...of, at: new Date(newest?.at ?? 0) });
  expect(made).toMatchObject({ exists: true, complete: true, changes: 1 });
  expect(await annals.exact.history.document({ ...of, changes: 1 })).toMatchObject({
    changes: 1,
    document: expect.any(Map),
  });
  expect(await annals.exact.history.entry(newest?.ref ?? '')).toMatchObject({ paths: expect.any(Map) });
});

test('a walk through the history meets each entry once, though others are recorded at the same time', async () => {
  const shelves = annals.instances('WALKED');
  await annals.customEntities.put('WALKED', { name: { en: 'Walked' } });
  for (let number = 0; number < 6; number += 1) await shelves.put(`w-${number}`, {});
  const seen: string[] = [];
  let recorded = 0;
  for await (const { entityId } of annals.history.list({ q: 'entity:WALKED type:create', size: 2 })) {
    seen.push(entityId);
    await shelves.put(`later-${recorded++}`, {});
  }
  expect(seen).toEqual(['w-5', 'w-4', 'w-3', 'w-2', 'w-1', 'w-0']);
});

test('a window is set beside an or', async () => {
  const either = or(and(entity('SHELF'), changeType('create')), actor('nobody'));
  expect(await annals.history.list({ q: and(either, occurredAt.from(new Date(0))) })).toMatchObject({
    totalElements: 7,
  });
});

test('a person has all names beside the id, and is counted once', async () => {
  const changes = ['Jane Doe', 'Jane Smith'].map((name, index) => {
    const change = changeOfDocuments({
      type: 'create',
      entity: 'badge',
      entityId: `b-${index}`,
      actor: name,
      related: [],
      at: Date.now() + index - 10,
      before: undefined,
      after: '{}',
    });
    if (change === 'unchanged') throw new Error('A creation is a change.');
    return { ...change, actorId: 'u-17', context: '{"ip":"203.0.113.7"}' };
  });
  await createRecorder(server.context.db, 'acme', () => Date.now())(changes);
  const { items, total } = await annals.actors.list({ prefix: 'JANE S', total: true });
  expect({ total, items }).toMatchObject({ total: 1, items: [{ actorId: 'u-17', changes: 2 }] });
  expect(items[0]?.names.map(({ name }) => name)).toEqual(['Jane Smith', 'Jane Doe']);
  expect(await annals.history.facets({ q: entity('badge'), field: 'actorId' })).toMatchObject({
    values: [{ value: 'u-17', name: 'Jane Smith', count: 2 }],
  });
  expect(await annals.history.facets({ q: entity('badge'), field: 'context.ip' })).toMatchObject({
    values: [{ value: '203.0.113.7', count: 2 }],
  });
});
