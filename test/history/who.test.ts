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
const all = await server.token('acme', { scope: 'changelog.changelog_manage' });
const record = createRecorder(server.context.db, 'acme', () => now);

const uuid = '0190c9a4-7d5e-7c3a-9b1f-3f2a1c0d9e8f';
const contexts = [
  '{"ip":"203.0.113.7"}',
  '{"ip":"203.0.113.7","user-agent":"a \\"b\\"","n":1.10}',
  '{"ip":"203.0.113.8","flag":true,"deep":{"x":1}}',
  `{"deep.x":1,"ip":null,"long":"${'x'.repeat(201)}"}`,
  '{"a\\\\b":"x","zero\\u0000":"half \\ud800"}',
  `{"long":"${'y'.repeat(200)}","one":"\\u0001"}`,
];
const people: Partial<Change>[] = [
  { actor: 'Jane Doe', actorId: 'u-17', correlationId: uuid },
  { actor: 'Jane Smith', actorId: 'u-17', onBehalfOf: { name: 'Acme Ltd', id: 'c-1' }, correlationId: 'req-1' },
  { actor: 'Jane Doe', actorId: 'u-18', onBehalfOf: { id: 'c-2' } },
  { actor: 'Jane Doe' },
  { actor: 'Support', onBehalfOf: { name: 'exists' }, correlationId: uuid.toUpperCase() },
  { actor: 'Nightly', correlationId: `\u0001${'ü'.repeat(199)}` },
];
const changes = people.map((who, index) =>
  changeOf({
    at: now - 1_000 + index,
    entity: 'order',
    entityId: `o-${index}`,
    context: contexts[index] ?? '',
    ...who,
  }),
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
    token: all,
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
  ['actorId:missing', ['o-3', 'o-4', 'o-5']],
  ['actorId:(missing, u-18)', ['o-2', 'o-3', 'o-4', 'o-5']],
  ['actorId:*', ['o-0', 'o-1', 'o-2']],
  ['actor:Jane Doe', ['o-0', 'o-2', 'o-3']],
  ['actor:Jane Doe actorId:u-17', ['o-0']],
  ['onBehalfOf:Acme*', ['o-1']],
  ['onBehalfOf:"exists"', ['o-4']],
  ['onBehalfOf:exists', ['o-1', 'o-4']],
  ['onBehalfOfId:c-2', ['o-2']],
  [`correlationId:${uuid}`, ['o-0']],
  [`correlationId:(req-1, ${uuid})`, ['o-0', 'o-1']],
  [`correlationId:${uuid.toUpperCase()}`, ['o-4']],
  ['correlationId:exists', ['o-0', 'o-1', 'o-4', 'o-5']],
  ['correlationId:missing type:update', ['o-2', 'o-3']],
  ['compoundLogicalQuery:((correlationId:req-1) OR (entity:order entityId:o-3))', ['o-1', 'o-3']],
  ['compoundLogicalQuery:((correlationId:req-1) OR (actorId:u-18))', ['o-1', 'o-2']],
  ['correlationId:req-1 actor:Jane Doe', []],
  ['context.ip:203.0.113.7', ['o-0', 'o-1']],
  ['context.ip:203.0.*', ['o-0', 'o-1', 'o-2']],
  ['context.ip:(203.0.113.8, x)', ['o-2']],
  ['context.ip:~8$', ['o-2']],
  ['context.ip:missing', ['o-3', 'o-4', 'o-5']],
  ['context.ip:exists type:update', ['o-0', 'o-1', 'o-2']],
  ['context."user-agent":"a \\"b\\""', ['o-1']],
  ['context.n:1.10', ['o-1']],
  ['context.n:1.1', []],
  ['context.flag:true', ['o-2']],
  ['context.deep:*', []],
  ['context.deep.x:1', ['o-3']],
  ['context.ip:203.0.113.7 actorId:u-17 correlationId:req-1', ['o-1']],
  ['context."a\\\\b":x', ['o-4']],
  [`context.long:${'x'.repeat(201)}`, ['o-3']],
  [`context.long:${'y'.repeat(200)}`, ['o-5']],
  [`correlationId:\u0001${'ü'.repeat(199)}`, ['o-5']],
  [`compoundLogicalQuery:((correlationId:\u0001${'ü'.repeat(199)}) OR (actorId:u-18))`, ['o-2', 'o-5']],
  ['context.one:\u0001', ['o-5']],
  ['compoundLogicalQuery:((onBehalfOfId:c-1) OR (actorId:missing type:update))', ['o-1', 'o-3', 'o-4', 'o-5']],
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
    for (const field of ['actorId', 'onBehalfOf', 'onBehalfOfId', 'correlationId']) {
      const { status, body } = await list(`${field}:x`, await tokenOf(actors));
      expect(status).toBe(400);
      expect(JSON.stringify(body)).toContain('does not show');
    }
  }
  const { body } = await list('actorId:u-17', await tokenOf('all'));
  expect(body.items).toMatchObject([
    { actorId: 'u-17', onBehalfOf: { id: 'c-1' } },
    { correlationId: expect.stringMatching(/^[\w-]{60,}$/) },
  ]);
});

test('a term on contexts needs the right to read them, whatever the operation', async () => {
  const reader = await server.token('acme', { scope: 'changelog.changelog_read' });
  const restriction = readRestriction([{ query: 'entity:order', hide: [], actors: 'all' }]);
  for (const token of [reader, await server.token('acme', { restriction })]) {
    for (const path of ['changelogs?', 'histogram?', 'facets?field=type&']) {
      const answer = await server.call(`/changelog/acme/${path}q=context.ip:x`, { token });
      expect([path, answer.status]).toEqual([path, 403]);
    }
  }
  expect((await server.call('/changelog/acme/feed?q=context.ip:x', { token: reader })).status).toBe(403);
  const jobs = await server.token('acme', { scope: 'changelog.changelog_read ai.agent_manage' });
  const call: Call = (path, init = {}) => server.call(path, { token: jobs, ...init });
  await expect(startExport(call, 'acme', { q: 'context.ip:x', format: 'CSV' })).rejects.toThrow('no export: 403');
});

test.each(['correlationId:a*', 'correlationId:~a', 'correlationId:(a, b*)', 'context:x', 'context."x:y'])(
  '%s is refused',
  async (q) => {
    expect((await list(q)).status).toBe(400);
  },
);

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
