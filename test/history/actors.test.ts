import { expect, test } from 'vitest';
import { readRestriction } from '../../src/history/search/plan/restriction.ts';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import type { Change } from '../../src/recording/change.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { changeOf } from '../support/server/history.ts';
import { startTestServer } from '../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const day = 86_400_000;
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const token = await server.token('acme', { scope: 'changelog.changelog_manage' });
const record = createRecorder(server.context.db, 'acme', () => now);

const made: [days: number, Partial<Change>][] = [
  [90, { actor: 'Jane Doe', actorId: 'u-17' }],
  [3, { actor: 'Jane Doe', actorId: 'u-17', context: '{"ip":"203.0.113.7"}' }],
  [2, { actor: 'Jane Smith', actorId: 'u-17', onBehalfOf: { name: 'Acme Ltd' }, context: '{"ip":"203.0.113.7"}' }],
  [1, { actor: 'Jane Smith', actorId: 'u-17', onBehalfOf: { name: 'Acme Ltd', id: 'c-1' }, entity: 'order' }],
  [1, { actor: 'Jane Doe', actorId: 'u-18', context: '{"ip":"10.0.0.1","n":1.10}' }],
  [1, { actor: 'STRASSE', actorId: 'v-1' }],
  [1, { actor: 'Jane Doe' }],
];
await record(
  made
    .slice(0, 4)
    .map(([days, who], index) => changeOf({ at: now - days * day, entity: 'product', entityId: `${index}`, ...who })),
);
await foldHistory(server.context.db, 'acme');
await record(
  made
    .slice(4)
    .map(([days, who], index) => changeOf({ at: now - days * day, entity: 'product', entityId: `n${index}`, ...who })),
);

async function get(path: string, as = token) {
  const answer = await server.call(`/changelog/acme/${path}`, { token: as, headers: { 'x-total-count': 'true' } });
  return { status: answer.status, headers: answer.headers, body: JSON.parse(await answer.text()) };
}

const time = (days: number) => new Date(now - days * day).toISOString();

test('a rename is one person with two names, and two people of one name stay two', async () => {
  const { status, headers, body } = await get('actors');
  expect(status).toBe(200);
  expect(headers.get('x-total-count')).toBe('3');
  expect(body).toEqual([
    {
      actorId: 'u-17',
      names: [
        { name: 'Jane Smith', first: time(2), last: time(1) },
        { name: 'Jane Doe', first: time(90), last: time(3) },
      ],
      changes: 4,
      last: time(1),
    },
    {
      actorId: 'u-18',
      names: [{ name: 'Jane Doe', first: time(1), last: time(1) }],
      changes: 1,
      last: time(1),
    },
    {
      actorId: 'v-1',
      names: [{ name: 'STRASSE', first: time(1), last: time(1) }],
      changes: 1,
      last: time(1),
    },
  ]);
  // A person's changes are those of all names.
  for (const { actorId, changes } of body) {
    const q = encodeURIComponent(`actorId:"${actorId}" occurredAt:>="1970-01-01T00:00:00Z"`);
    expect((await get(`changelogs?q=${q}`)).body.totalElements).toBe(changes);
  }
});

test.each([
  ['jane', ['u-17', 'u-18']],
  ['JANE S', ['u-17']],
  ['U-1', ['u-17', 'u-18']],
  ['v', ['v-1']],
  ['stra', ['v-1']],
  ['ane', []],
  ['u-17%', []],
])('the prefix %s finds %j', async (prefix, ids) => {
  const { body } = await get(`actors?prefix=${encodeURIComponent(prefix)}`);
  expect(body.map(({ actorId }: { actorId: string }) => actorId)).toEqual(ids);
});

test('the list is paged as others, and a cursor holds for one prefix', async () => {
  const first = await get('actors?pageSize=1&prefix=u');
  const next = first.headers.get('x-next-cursor') ?? '';
  const second = await get(`actors?pageSize=1&prefix=u&next=${next}`);
  expect(second.body).toMatchObject([{ actorId: 'u-18' }]);
  expect(second.headers.get('x-next-cursor')).toBeNull();
  expect((await get(`actors?pageSize=1&prefix=v&next=${next}`)).status).toBe(400);
  expect((await get('actors?sort=actorId:ASC')).body).toHaveLength(3);
  expect((await get('actors?sort=changes:DESC')).status).toBe(400);
});

test('facets count by id with the latest name, by whom it was for, and by members of contexts', async () => {
  expect((await get('facets?field=actorId')).body).toEqual({
    field: 'actorId',
    totalElements: 6,
    values: [
      { value: 'u-17', count: 3, name: 'Jane Smith' },
      { value: 'u-18', count: 1, name: 'Jane Doe' },
      { value: 'v-1', count: 1, name: 'STRASSE' },
    ],
    others: 1,
  });
  const old = encodeURIComponent(`occurredAt:(>="1970-01-01T00:00:00Z" AND <"${time(2)}")`);
  expect((await get(`facets?field=actorId&q=${old}`)).body.values).toEqual([
    { value: 'u-17', count: 2, name: 'Jane Doe' },
  ]);
  expect((await get('facets?field=actorId&q=path:price')).body).toMatchObject({ totalElements: 0, values: [] });
  expect((await get('facets?field=onBehalfOf')).body).toMatchObject({
    values: [{ value: 'Acme Ltd', count: 2 }],
    others: 4,
  });
  for (const field of ['context.ip', 'context."ip"', `context."${'x'.repeat(1_000)} \\""`]) {
    const { status, body } = await get(`facets?${new URLSearchParams({ field })}`);
    expect({ status, body }).toMatchObject({ status: 200, body: { field } });
  }
  expect((await get('facets?field=context.ip&size=1')).body).toEqual({
    field: 'context.ip',
    totalElements: 6,
    values: [{ value: '203.0.113.7', count: 2 }],
    others: 4,
  });
  const quoted = encodeURIComponent('context."n"');
  expect((await get(`facets?field=${quoted}`)).body).toMatchObject({ values: [{ value: '1.10', count: 1 }] });
  for (const field of ['context', 'context.', 'context."', 'onBehalfOfId', 'correlationId']) {
    expect((await get(`facets?field=${encodeURIComponent(field)}`)).status).toBe(400);
  }
});

test('a restricted credential sees no list, and facets only with actors: all', async () => {
  const tokenOf = async (actors: true | 'all') =>
    await server.token('acme', { restriction: readRestriction([{ query: 'entity:order', hide: [], actors }]) });
  const [names, all] = [await tokenOf(true), await tokenOf('all')];
  expect((await get('actors', all)).status).toBe(403);
  expect((await get('facets?field=actorId', names)).status).toBe(400);
  expect((await get('facets?field=onBehalfOf', names)).status).toBe(400);
  expect((await get('facets?field=actorId', all)).body.values).toEqual([
    { value: 'u-17', count: 1, name: 'Jane Smith' },
  ]);
  const reader = await server.token('acme', { scope: 'changelog.changelog_read' });
  for (const as of [names, all, reader]) expect((await get('facets?field=context.ip', as)).status).toBe(403);
  expect((await get('actors', reader)).status).toBe(200);
});
