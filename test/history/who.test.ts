import { expect, test } from 'vitest';
import type { ShownActors } from '../../src/core/written-restriction.ts';
import { readRestriction } from '../../src/history/search/plan/restriction.ts';
import type { Change } from '../../src/recording/change.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { changeOf } from '../support/server/history.ts';
import { type Call, contentOf, endOfJob, startExport } from '../support/server/jobs.ts';
import { startTestServer } from '../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const all = await server.token('acme');
const record = createRecorder(server.context.db, 'acme', () => now);

const uuid = '0190c9a4-7d5e-7c3a-9b1f-3f2a1c0d9e8f';
const people: Partial<Change>[] = [
  { actor: 'Jane Doe', actorId: 'u-17', correlationId: uuid },
  { actor: 'Jane Smith', actorId: 'u-17', onBehalfOf: { name: 'Acme Ltd', id: 'c-1' }, correlationId: 'req-1' },
  { actor: 'Jane Doe', actorId: 'u-18', onBehalfOf: { id: 'c-2' } },
  { actor: 'Jane Doe' },
  { actor: 'Support', onBehalfOf: { name: 'exists' }, correlationId: uuid.toUpperCase() },
];
const changes = people.map((who, index) =>
  changeOf({ at: now - 1_000 + index, entity: 'order', entityId: `o-${index}`, ...who }),
);
expect(await record(changes)).toEqual(people.map(() => 'recorded'));

async function list(q: string, token = all) {
  const answer = await server.call(`/changelog/acme/changelogs?${new URLSearchParams({ q })}`, { token });
  return { status: answer.status, body: (await answer.json()) as { items: Record<string, unknown>[] } };
}

async function found(q: string): Promise<unknown[]> {
  const { status, body } = await list(q);
  expect(status).toBe(200);
  return body.items.map(({ entityId }) => entityId).reverse();
}

test('an entry shows who made it, for whom, and what it belongs to', async () => {
  const { body } = await list('entity:order');
  const shown = body.items.reverse().map(({ actor, actorId, onBehalfOf, correlationId }) => ({
    actor,
    ...(actorId !== undefined && { actorId }),
    ...(onBehalfOf !== undefined && { onBehalfOf }),
    ...(correlationId !== undefined && { correlationId }),
  }));
  expect(shown).toEqual(people);
  // through the several statements of a read with context too
  const answer = await server.call('/changelog/acme/changelogs?context=true', {
    token: await server.token('acme', { scope: 'changelog.changelog_manage' }),
  });
  const { items } = (await answer.json()) as { items: Record<string, unknown>[] };
  expect(items.map(({ actorId }) => actorId)).toEqual(people.map(({ actorId }) => actorId).reverse());
});

test.each([
  ['actorId:u-17', ['o-0', 'o-1']],
  ['actorId:u-*', ['o-0', 'o-1', 'o-2']],
  ['actorId:(u-18, x)', ['o-2']],
  ['actorId:~8$', ['o-2']],
  ['actorId:exists', ['o-0', 'o-1', 'o-2']],
  ['actorId:missing', ['o-3', 'o-4']],
  ['actorId:(missing, u-18)', ['o-2', 'o-3', 'o-4']],
  ['actorId:*', ['o-0', 'o-1', 'o-2']],
  ['actor:Jane Doe', ['o-0', 'o-2', 'o-3']],
  ['actor:Jane Doe actorId:u-17', ['o-0']],
  ['onBehalfOf:Acme*', ['o-1']],
  ['onBehalfOf:"exists"', ['o-4']],
  ['onBehalfOf:exists', ['o-1', 'o-4']],
  ['onBehalfOfId:c-2', ['o-2']],
  ['compoundLogicalQuery:((onBehalfOfId:c-1) OR (actorId:missing type:update))', ['o-1', 'o-3', 'o-4']],
])('%s', async (q, entities) => {
  expect(await found(q)).toEqual(entities);
});

test('a repeat is a duplicate, and one with another person or correlation is a conflict', async () => {
  const [first] = changes;
  if (first === undefined) throw new Error('no change');
  const again = async (change: Change) => (await record([change]))[0];
  expect(await again(first)).toBe('duplicate');
  expect(await again({ ...first, actorId: 'u-99' })).toBe('conflict');
  expect(await again({ ...first, onBehalfOf: { id: 'c-9' } })).toBe('conflict');
  expect(await again({ ...first, correlationId: 'other' })).toBe('conflict');
  expect(await again({ ...first, correlationId: 'other', derived: { correlationId: true } })).toBe('duplicate');
  expect(await again({ ...first, actor: 'Jane', derived: { actor: true } })).toBe('duplicate');
});

test('a restricted credential sees and finds them only with actors: all', async () => {
  const tokenOf = async (actors: ShownActors) =>
    await server.token('acme', { restriction: readRestriction([{ query: 'entity:order', hide: [], actors }]) });
  const ofNames = await tokenOf(true);
  expect(JSON.stringify((await list('', ofNames)).body)).not.toMatch(/u-17|onBehalfOf|correlationId/);
  for (const actors of [false, true] as const) {
    for (const field of ['actorId', 'onBehalfOf', 'onBehalfOfId']) {
      const { status, body } = await list(`${field}:x`, await tokenOf(actors));
      expect(status).toBe(400);
      expect(JSON.stringify(body)).toContain('does not show');
    }
  }
  const { body } = await list('actorId:u-17', await tokenOf('all'));
  expect(body.items).toMatchObject([{ actorId: 'u-17', onBehalfOf: { id: 'c-1' } }, { correlationId: uuid }]);
});

test('an export has four columns at the end', async () => {
  const token = await server.token('acme', { scope: 'changelog.changelog_read ai.agent_manage' });
  const call: Call = (path, init = {}) => server.call(path, { token, ...init });
  const jobOf = async (format: string) => {
    const id = await startExport(call, 'acme', { q: '', format });
    await endOfJob(call, 'acme', id);
    return await contentOf(call, 'acme', id);
  };
  expect(await jobOf('CSV')).toContain(',"u-17","Acme Ltd","c-1","req-1"\r\n');
  expect(await jobOf('NDJSON')).toContain(
    '"actor":"Jane Smith","actorId":"u-17","onBehalfOf":{"name":"Acme Ltd","id":"c-1"},"correlationId":"req-1","related"',
  );
});
