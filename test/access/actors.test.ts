import { expect, test } from 'vitest';
import { createKey } from '../../src/access/keys/key-store.ts';
import { setClientRights } from '../../src/access/oauth/clients.ts';
import { readRules } from '../../src/access/sign-in/rules.ts';
import { sealViewerToken } from '../../src/access/viewer-tokens/token-text.ts';
import type { ShownActors } from '../../src/core/written-restriction.ts';
import { readRestriction } from '../../src/history/search/plan/restriction.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { changeOf } from '../support/server/history.ts';
import { startTestServer } from '../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10);
let waited = 0;
const server = closeAfterAll(
  await startTestServer({ clock: { now: () => now, elapsed: () => performance.now() + waited } }),
);
const { db, sealer } = server.context;
const who = {
  actor: 'Jane Doe',
  actorId: 'u-17',
  onBehalfOf: { name: 'Acme Ltd', id: 'c-1' },
  correlationId: 'req-1',
};
const change = changeOf({ at: now - 1_000, entity: 'order', entityId: 'o-1', context: '{"ip":"203.0.113.7"}', ...who });
await server.createTenant('acme');
expect(await createRecorder(db, 'acme', () => now)([change])).toEqual(['recorded']);

const shownBy = new Map<ShownActors | undefined, object>([
  [undefined, { actor: 'Jane Doe' }],
  [true, { actor: 'Jane Doe' }],
  [false, {}],
  ['all', { ...who, correlationId: expect.stringMatching(/^[\w-]{60,}$/) }],
]);
const terms = ['actorId:u-17', 'onBehalfOf:Acme*', 'onBehalfOfId:c-1', 'correlationId:req-1'];

async function look(path: string, token: string, q = '') {
  const answer = await server.call(`${path}?${new URLSearchParams({ q })}`, { token });
  const body = (await answer.json()) as { items?: Record<string, unknown>[] };
  const { actor, actorId, onBehalfOf, correlationId } = body.items?.[0] ?? {};
  return { status: answer.status, who: { actor, actorId, onBehalfOf, correlationId } };
}

const viewed = (token: string, q?: string) => look('/viewer/acme/changes', token, q);

const clientOf = (restriction: readonly { query: string; hide: string[]; actors?: ShownActors }[]) =>
  server.createClient('acme', { restriction: readRestriction(restriction) });

async function makeViewer(body: object, token: string): Promise<number> {
  const json = { q: 'entity:*', subject: 'c-1', ...body };
  return (await server.call('/changelog/acme/viewer-tokens', { token, json })).status;
}

test.each([...shownBy])(
  'a viewer token and a client with actors: %s show, find and count no more than that',
  async (actors, shown) => {
    const token = await server.viewerToken('acme', actors === undefined ? {} : { actors });
    const part = { query: 'entity:order', hide: [], ...(actors !== undefined && { actors }) };
    const client = await server.tokenOf(await clientOf([part]));
    const ways = [
      { list: '/viewer/acme/changes', facets: '/viewer/acme/facets', as: token },
      { list: '/changelog/acme/changelogs', facets: '/changelog/acme/facets', as: client },
    ];
    for (const { list, facets, as } of ways) {
      expect(await look(list, as)).toEqual({ status: 200, who: shown });
      for (const q of terms) expect((await look(list, as, q)).status).toBe(actors === 'all' ? 200 : 400);
      expect((await look(list, as, 'actor:Jane*')).status).toBe(actors === false ? 400 : 200);
      expect((await look(list, as, 'context.ip:exists')).status).toBe(403);
      for (const field of ['actorId', 'onBehalfOf']) {
        const answer = await server.call(`${facets}?${new URLSearchParams({ field })}`, { token: as });
        expect(answer.status).toBe(actors === 'all' ? 200 : 400);
      }
    }
  },
);

test('a token and a client that were stored before show names alone', async () => {
  const { clientId } = await server.createClient('acme', { scope: 'changelog.viewer_issue' });
  const old = { query: 'entity:*', hide: [], clientId, subject: 'c-1', expiresAt: now + 60_000, export: true };
  for (const token of [old, { ...old, actors: true }]) {
    expect((await viewed(sealViewerToken(sealer, token))).who).toEqual({ actor: 'Jane Doe' });
  }
  const client = await clientOf([{ query: 'entity:order', hide: [] }]);
  await server.database.pool.query('update oauth_client set restriction = $1 where client_id = $2', [
    '[{"query":"entity:order actor:Jane*","hide":[]}]',
    client.clientId,
  ]);
  const shown = await look('/changelog/acme/changelogs', await server.tokenOf(client));
  expect(shown).toEqual({ status: 200, who: { actor: 'Jane Doe' } });
  // A query of before could name actors that the changes do not show.
  const blind = { ...old, query: 'actor:Jane*', actors: false };
  expect(await viewed(sealViewerToken(sealer, blind))).toEqual({ status: 200, who: {} });
});

test.each([false, true, 'all'] as const)('a maker with actors: %s gives no token more than that', async (own) => {
  const maker = await server.tokenOf(await clientOf([{ query: 'entity:order', hide: [], actors: own }]));
  for (const actors of [false, true, 'all'] as const) {
    const least = own === 'all' ? actors : actors === 'all' ? own : own && actors;
    const token = await server.viewerToken('acme', { actors, token: maker });
    expect((await viewed(token)).who).toEqual(shownBy.get(least));
    for (const q of terms) {
      expect(await makeViewer({ q, actors }, maker)).toBe(least === 'all' ? 201 : 400);
    }
  }
});

test('a fixed query has terms on ids only where they are shown', async () => {
  const maker = await server.token('acme');
  for (const q of terms) {
    expect(await makeViewer({ q }, maker)).toBe(400);
    expect(await makeViewer({ q, actors: 'all' }, maker)).toBe(201);
    expect(() => readRestriction([{ query: q, hide: [] }])).toThrow('is not valid at position 1');
    expect(readRestriction([{ query: q, hide: [], actors: 'all' }]).actors).toBe('all');
  }
  expect(await makeViewer({ actors: 'none' }, maker)).toBe(400);
  const named = await server.viewerToken('acme', { actors: 'names', token: maker });
  expect((await viewed(named)).who).toEqual({ actor: 'Jane Doe' });
});

test('a rule of sign-in takes names for true', () => {
  const rule = { claims: { group: 'a' }, tenants: ['acme'], scopes: ['changelog.changelog_read'] };
  for (const [actors, shown] of [
    ['names', true],
    [true, true],
    [false, false],
    ['all', 'all'],
  ]) {
    const { admit } = readRules(JSON.stringify({ rules: [{ ...rule, actors }] }), readRestriction);
    expect(admit({ group: 'a' }).get('acme')?.restriction?.actors).toBe(shown);
  }
});

test('only a maker who may read contexts gives a token with terms on them, and only as long as they may', async () => {
  const q = 'context.ip:203.0.113.7';
  const issue = 'changelog.viewer_issue';
  const reader = await server.token('acme', { scope: `${issue} changelog.changelog_read` });
  expect(await makeViewer({ q }, reader)).toBe(403);
  const manager = await server.createClient('acme', { scope: `${issue} changelog.changelog_manage` });
  const token = await server.viewerToken('acme', { q, token: await server.tokenOf(manager) });
  expect(await viewed(token)).toEqual({ status: 200, who: { actor: 'Jane Doe' } });
  expect(
    (await viewed(await server.viewerToken('acme', { q: 'context.ip:other', token: await server.tokenOf(manager) })))
      .who,
  ).toEqual({});
  await setClientRights(db, 'acme', manager.clientId, { scopes: [issue] });
  waited += 5_001;
  expect((await viewed(token)).status).toBe(401);
});

async function callTool(token: string, name: string, input: object): Promise<string> {
  const answer = await server.call('/mcp/acme', {
    token,
    headers: { accept: 'application/json, text/event-stream' },
    json: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } },
  });
  return await answer.text();
}

test('a key shows AI tools as much as it was given', async () => {
  for (const [actors, shown] of [
    [undefined, false],
    ['all', true],
  ] as const) {
    const restriction = readRestriction([{ query: 'entity:order', hide: [], ...(actors && { actors }) }]);
    const made = await createKey(db, { tenant: 'acme', scopes: ['changelog.changelog_read'], restriction });
    expect(made.actors).toBe(actors);
    const text = await callTool(made.key, 'search_changes', { q: '' });
    expect(text).toContain('Jane Doe');
    for (const part of ['u-17', 'Acme Ltd', 'correlationId']) expect(text.includes(part)).toBe(shown);
    expect(text).not.toContain('req-1');
  }
});

test('AI tools find and count people, and contexts only with the right to read them', async () => {
  const scopes = ['changelog.changelog_read'];
  const { key } = await createKey(db, { tenant: 'acme', scopes });
  const ofJane = await callTool(key, 'count_changes', { q: 'actorId:u-17 onBehalfOf:exists', by: 'actorId' });
  expect(ofJane).toContain(String.raw`{\"value\":\"u-17\",\"count\":1,\"name\":\"Jane Doe\"}`);
  const inContext = { q: 'context.ip:203.0.113.7' };
  expect(await callTool(key, 'search_changes', inContext)).toContain('"isError":true');
  const manager = await server.token('acme', { scope: 'changelog.changelog_manage' });
  expect(await callTool(manager, 'search_changes', inContext)).toContain('u-17');
});
