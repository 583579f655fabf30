import { expect, test } from 'vitest';
import type { ShownActors } from '../../../src/core/written-restriction.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf } from '../../support/server/history.ts';
import { type Call, contentOf, endOfJob, startExport } from '../../support/server/jobs.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10);
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
await server.createTenant('acme');
const paths = ['paths.email', 'paths.say "hi" é'];
const erased = [
  ['actor', 'actorId', 'onBehalfOf', 'entityId', 'context', 'recordedBy', ...paths],
  ['actorId', 'onBehalfOf.name', 'context'],
  ['context'],
  undefined,
];
const changes = erased.map((_parts, index) => changeOf({ at: now - index, entity: 'order', entityId: `o-${index}` }));
expect(await createRecorder(server.context.db, 'acme', () => now)(changes)).toEqual(changes.map(() => 'recorded'));
for (const [index, parts] of erased.entries()) {
  await server.database.pool.query('update change_entry set erased = $1 where entity_id = $2', [
    parts === undefined ? null : JSON.stringify(parts),
    `o-${index}`,
  ]);
}

const shownTo = new Map<ShownActors | undefined, unknown[]>([
  [undefined, erased],
  [
    'all',
    [['actor', 'actorId', 'onBehalfOf', 'entityId', ...paths], ['actorId', 'onBehalfOf.name'], undefined, undefined],
  ],
  [true, [['actor', 'entityId', ...paths], undefined, undefined, undefined]],
  [false, [['entityId', ...paths], undefined, undefined, undefined]],
]);

test.each([...shownTo])('erased names to a reader with actors: %s what the reader sees', async (actors, shown) => {
  const restriction = actors === undefined ? undefined : readRestriction([{ query: 'entity:order', hide: [], actors }]);
  const token = await server.token('acme', restriction && { restriction });
  const call: Call = (path, init = {}) => server.call(path, { token, ...init });
  const erasedOf = (entries: readonly unknown[]) => entries.map((entry) => (entry as { erased?: unknown }).erased);
  const listed = (await (await call('/changelog/acme/changelogs?q=entity:order')).json()) as { items: unknown[] };
  expect(erasedOf(listed.items)).toEqual(shown);
  const id = await startExport(call, 'acme', { q: 'entity:order', format: 'NDJSON' });
  await endOfJob(call, 'acme', id);
  const lines = (await contentOf(call, 'acme', id)).trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(listed.items);
  if (actors === undefined) return;
  const viewer = await server.viewerToken('acme', { q: 'entity:order', actors });
  const viewed = (await (await server.call('/viewer/acme/changes', { token: viewer })).json()) as { items: unknown[] };
  expect(erasedOf(viewed.items)).toEqual(shown);
});

test.each([
  ['all', erased],
  [true, [['actor', 'entityId', 'context', 'recordedBy', ...paths], ['context'], ['context'], undefined]],
] as const)('a subscription with actors: %s sends the parts that it sends', async (actors, shown) => {
  const { feed } = server.context;
  const after = await feed.positionOf('acme', 'start');
  const { items } = await feed.readMatches('acme', { q: 'entity:order', after, maxItems: 10, actors });
  const sent = items.map(({ text }) => (JSON.parse(text) as { erased?: unknown }).erased);
  expect(sent).toEqual([...shown]);
});
