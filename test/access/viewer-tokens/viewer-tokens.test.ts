import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createKey } from '../../../src/access/keys/key-store.ts';
import { revokeClient, setClientRights } from '../../../src/access/oauth/clients.ts';
import { viewerScriptRoute } from '../../../src/access/viewer-tokens/script-route.ts';
import { maxTokenLength, openViewerToken } from '../../../src/access/viewer-tokens/token-text.ts';
import { sealRef } from '../../../src/history/entries/entry-ref.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { rowsOfCsv } from '../../support/oracle/csv.ts';
import { Browser } from '../../support/server/browser.ts';
import { changeOf } from '../../support/server/history.ts';
import { contentOf, endOfJob, startExport } from '../../support/server/jobs.ts';
import { routesOf } from '../../support/server/routes-of.ts';
import { startTestServer } from '../../support/server/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const reads = ['changes', 'histogram', 'facets', 'entries'];
const origin = 'https://shop.example';

let passed = 0;
/** Of the clock that never steps back. */
let waited = 0;

const script = 'export const viewer = 1;\n';

async function make(body: unknown, { token = maker, tenant = 'acme' } = {}) {
  const response = await server.call(`/changelog/${tenant}/viewer-tokens`, { token, json: body });
  return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) };
}

const made = (body: object, token = maker) =>
  server.viewerToken('acme', { subject: 'c1', export: false, ...body, token });

const built = temporaryFolder();
const files = { js: script, 'js.gz': gzipSync(script), 'js.br': brotliCompressSync(script), 'js.map': '{}' };
for (const [ending, content] of Object.entries(files)) writeFileSync(join(built, `viewer.${ending}`), content);
const server = closeAfterAll(
  await startTestServer({
    clock: { now: () => now + passed, elapsed: () => performance.now() + waited },
    environment: { ANNALS_CORS_ORIGINS: 'none' },
    extend: (app) => {
      const config = { scopes: ['changelog.changelog_read'], isOfViewer: true, appliesRestriction: true } as const;
      app.get('/viewer/:tenant/fails', { config, schema: { hide: true } }, () => {
        throw new Error('a fault of ours');
      });
      app.register(viewerScriptRoute, { folder: built, prefix: '/built' });
      app.register(viewerScriptRoute, { folder: join(built, 'empty'), prefix: '/empty' });
    },
  }),
);
/** Makes tokens, and is not restricted. */
const maker = await server.token('acme');
await server.createTenant('rival');
const ofCustomer = (id: string) => [{ entity: 'customer', entityId: id }];
await createRecorder(
  server.context.db,
  'acme',
  () => now,
)([
  changeOf({ at: now - 1_000, entity: 'order', entityId: 'o1', actor: 'Jane', related: ofCustomer('c1') }),
  changeOf({
    at: now - 2_000,
    entity: 'order',
    entityId: 'o1',
    actor: '=1+1',
    name: 'A "b", c',
    paths: '{"card":{"before":1,"after":4111},"state":{"after":"PAID"}}',
    related: ofCustomer('c1'),
  }),
  changeOf({ at: now - 3_000, entity: 'order', entityId: 'o2', actor: 'John', related: ofCustomer('c2') }),
  changeOf({ at: now - 4_000, entity: 'price', entityId: 'p1', actor: 'Hidden Harry' }),
]);
const tokenOfC1 = await made({ q: 'related.entityId:c1', hide: ['card'], actors: false });

async function look(token: string, read: string, parameters: Record<string, string> = {}, init: RequestInit = {}) {
  const response = await server.call(`/viewer/acme/${read}?${new URLSearchParams(parameters)}`, { token, ...init });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined };
}

test('a token shows the changes of its query, masked and without actors, by each of the four reads', async () => {
  const changes = await look(tokenOfC1, 'changes', { ref: 'true' });
  expect(changes.body.totalElements).toBe(2);
  expect(changes.body.items.map(({ entityId, actor }: Record<string, string>) => ({ entityId, actor }))).toEqual([
    { entityId: 'o1' },
    { entityId: 'o1' },
  ]);
  const [, { ref, paths }] = changes.body.items;
  expect(paths).toEqual({ card: { before: '********', after: '********' }, state: { after: 'PAID' } });
  expect((await look(tokenOfC1, 'histogram')).body.totalElements).toBe(2);
  expect((await look(tokenOfC1, 'facets', { field: 'entity' })).body.values).toEqual([{ value: 'order', count: 2 }]);
  expect((await look(tokenOfC1, 'entries', { ref })).body.paths).toEqual(paths);
  const all = await look(await made({ q: 'entity:*' }), 'changes', { ref: 'true' });
  expect(all.body.totalElements).toBe(4);
  expect((await look(tokenOfC1, 'entries', { ref: all.body.items[2].ref })).status).toBe(404);
  for (const [read, parameters, status] of [
    ['facets', { field: 'actor' }, 400],
    ['changes', { q: 'actor:Jane' }, 400],
    ['changes', { q: 'entity' }, 400],
    ['changes', { context: 'true' }, 403],
    ['changes', { q: 'entityId:o2 entity:order' }, 200],
  ] as const) {
    const answer = await look(tokenOfC1, read, parameters);
    expect({ read, parameters, status: answer.status }).toEqual({ read, parameters, status });
    expect(answer.text).not.toContain('c1');
    expect(answer.headers.has('server-timing')).toBe(false);
  }
});

describe('a token is good for these four reads of its tenant alone', () => {
  test('no other operation takes it, whatever its method and its place', async () => {
    const token = await made({ q: 'entity:*', export: true });
    // One of them is this test's own.
    const targets = routesOf(server.app).filter(({ path }) => path.includes(':tenant') && !path.endsWith('/fails'));
    expect(targets.length).toBeGreaterThan(60);
    const others = [
      { path: '/console/api/changelog/:tenant/changelogs', method: 'GET' },
      { path: '/console/api/viewer/:tenant/changes', method: 'GET' },
      { path: '/console/api/session', method: 'GET' },
      { path: '/viewer/:tenant/feed', method: 'GET' },
    ];
    const answered: string[] = [];
    for (const { path, method } of [...targets, ...others]) {
      const target = path.replace(':tenant', 'acme').replaceAll(/:\w+/g, '1');
      const { status, body } = await fetch(`${server.baseUrl}${target}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'sec-fetch-site': 'same-origin' },
      });
      await body?.cancel();
      if (status !== 401 && status !== 404) answered.push(`${method} ${path} ${status}`);
    }
    expect(answered.sort()).toEqual([
      'GET /viewer/:tenant/changes 200',
      'GET /viewer/:tenant/entries 400',
      'GET /viewer/:tenant/facets 400',
      'GET /viewer/:tenant/histogram 200',
      'HEAD /viewer/:tenant/changes 200',
      'HEAD /viewer/:tenant/entries 400',
      'HEAD /viewer/:tenant/facets 400',
      'HEAD /viewer/:tenant/histogram 200',
    ]);
  });

  test('nothing else is good for them: no access token, no key, no Basic, no session, and not nothing', async () => {
    const client = await server.createClient('acme');
    const { key } = await createKey(server.context.db, { tenant: 'acme', scopes: ['changelog.changelog_read'] });
    const browser = new Browser(server);
    await browser.signIn(client);
    const cookie = browser.cookie ?? '';
    const basic = Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64');
    for (const read of reads) {
      for (const headers of [
        { authorization: `Bearer ${maker}` },
        { authorization: `Bearer ${key}` },
        { authorization: `Basic ${basic}` },
        { cookie },
        { cookie, authorization: `Bearer ${maker}` },
        {},
      ]) {
        const response = await fetch(`${server.baseUrl}/viewer/acme/${read}`, { headers });
        expect({ read, headers, status: response.status }).toEqual({ read, headers, status: 401 });
        expect(response.headers.getSetCookie()).toEqual([]);
        await response.body?.cancel();
      }
      expect((await browser.call(`/console/api/viewer/acme/${read}`)).status).toBe(404);
    }
  });

  test('in another tenant it is 403, whether the tenant exists or not, and a name that is none is 400', async () => {
    for (const [tenant, status] of [
      ['rival', 403],
      ['nobody', 403],
      ['Acme', 400],
      ['ac%ff', 400],
    ] as const) {
      const response = await server.call(`/viewer/${tenant}/changes`, { token: tokenOfC1 });
      expect({ tenant, status: response.status }).toEqual({ tenant, status });
    }
  });
});

describe('a token that is not as it was made is 401', () => {
  test('each part of its bytes is authenticated', async () => {
    const [prefix, text] = [tokenOfC1.slice(0, 12), tokenOfC1.slice(12)];
    const sealed = Buffer.from(text, 'base64url');
    const { sealer } = server.context;
    const content = Buffer.from(JSON.stringify(openViewerToken(sealer, tokenOfC1)));
    // Version, key, salt, nonce, content, tag.
    for (const place of [0, 1, 4, 5, 20, 21, 32, 33, 60, sealed.length - 17, sealed.length - 16, sealed.length - 1]) {
      const altered = Buffer.from(sealed);
      altered[place] = (altered[place] ?? 0) ^ 1;
      expect(openViewerToken(sealer, prefix + altered.toString('base64url')), `${place}`).toBeUndefined();
    }
    const faulty = [
      `${prefix}${text.slice(0, -1)}`,
      `${prefix}${text}A`,
      `${prefix}${text}=`,
      `${prefix}${sealed.toString('base64')}=`,
      `${prefix}${text.slice(0, 9)}.${text.slice(9)}`,
      text,
      `annals_${text}`,
      prefix,
      `${prefix}${'A'.repeat(maxTokenLength)}`,
      `${prefix}${sealRef(sealer, 'acme', { at: now, identity: '0'.repeat(32) })}`,
      `${prefix}${Buffer.from(sealer.seal(content, 'cookie')).toString('base64url')}`,
    ];
    for (const token of faulty) {
      const { status, body } = await look(token, 'changes');
      expect({ token, status, body }).toMatchObject({
        status: 401,
        body: { fault: { faultstring: 'Invalid access token' } },
      });
    }
  });

  test('an expired one is 401 and says so, from the very second of its expiry', async () => {
    const [short, usual, long] = [
      await made({ q: 'entity:*', expiresIn: 1 }),
      await made({ q: 'entity:*' }),
      await made({ q: 'entity:*', expiresIn: 3_600 }),
    ];
    const statuses = async () =>
      await Promise.all([short, usual, long].map(async (viewerToken) => (await look(viewerToken, 'changes')).status));
    for (const [after, expected] of [
      [999, [200, 200, 200]],
      [1_000, [401, 200, 200]],
      [599_999, [401, 200, 200]],
      [600_000, [401, 401, 200]],
      [3_600_000, [401, 401, 401]],
    ] as const) {
      passed = after;
      expect({ after, statuses: await statuses() }).toEqual({ after, statuses: expected });
    }
    expect((await look(long, 'changes')).body.fault.faultstring).toBe('Access Token expired');
    passed = 0;
  });

  test('it ends within 5 seconds after its maker is revoked or may no longer make tokens', async () => {
    const { db } = server.context;
    const ends: ((clientId: string) => Promise<unknown>)[] = [
      (clientId) => revokeClient(db, clientId),
      (clientId) => setClientRights(db, 'acme', clientId, { scopes: ['changelog.changelog_read'] }),
      (clientId) => server.database.pool.query('delete from oauth_client where client_id = $1', [clientId]),
    ];
    for (const end of ends) {
      const client = await server.createClient('acme');
      const token = await made({ q: 'entity:*' }, await server.tokenOf(client));
      expect((await look(token, 'changes')).status).toBe(200);
      await end(client.clientId);
      waited += 5_001;
      expect((await look(token, 'changes')).status).toBe(401);
    }
  });
});

test('of a maker that sees a part, the token shows what both show, with the masks of both', async () => {
  const restriction = readRestriction([{ query: 'entity:order', hide: ['card'] }]);
  const client = await server.createClient('acme', { restriction });
  const ofMaker = await server.tokenOf(client);
  const token = await made({ q: 'entityId:(o1, p1) entity:*', hide: ['state'] }, ofMaker);
  const { body } = await look(token, 'changes');
  expect(body.totalElements).toBe(2);
  expect(body.items[1].paths).toEqual({
    card: { before: '********', after: '********' },
    state: { after: '********' },
  });
  const guess = await made({ q: 'change:elemMatch(path:card after:4111)' }, ofMaker);
  expect((await look(guess, 'changes')).body.totalElements).toBe(0);
  const without = readRestriction([{ query: '', hide: [], actors: false }]);
  const blind = await server.tokenOf(await server.createClient('acme', { restriction: without }));
  expect((await make({ q: 'actor:Jane', subject: 'c1' }, { token: blind })).status).toBe(400);
  const still = await look(await made({ q: 'entity:*', actors: true }, blind), 'changes');
  expect(still.body.items[0]).not.toHaveProperty('actor');
  // What the maker may see later holds for tokens that were made before.
  await server.database.pool.query('update oauth_client set restriction = $1 where client_id = $2', [
    JSON.stringify([{ query: 'entity:price', hide: [] }]),
    client.clientId,
  ]);
  waited += 5_001;
  const later = await look(token, 'changes');
  expect(later.body.items.map(({ entity }: { entity: string }) => entity)).toEqual(['price']);
});

describe('who makes a token', () => {
  test('needs the scope for it, in its own tenant', async () => {
    const reader = await server.token('acme', { scope: 'changelog.changelog_read' });
    const issuer = await server.token('acme', { scope: 'changelog.viewer_issue' });
    const body = { q: 'entity:*', subject: 'c1' };
    expect((await make(body, { token: reader })).status).toBe(403);
    expect((await make(body, { token: issuer, tenant: 'rival' })).status).toBe(403);
    const { status, headers: sent, body: answer } = await make(body, { token: issuer });
    expect([status, answer.expiresIn, sent.get('cache-control')]).toEqual([201, 600, 'no-store']);
    expect(answer.token).toMatch(/^annals_view_[\w-]+$/);
    expect((await server.call('/changelog/acme/changelogs', { token: issuer })).status).toBe(403);
    expect((await look(answer.token, 'changes')).body.totalElements).toBe(4);
  });

  const valid = { q: 'entity:*', subject: 'c1' };
  test.each<[string, unknown, string]>([
    ['without q', { subject: 'c1' }, 'q'],
    ['with an empty q', { ...valid, q: '' }, 'q'],
    ['with a blank q', { ...valid, q: ' \n ' }, 'q'],
    ['with a q that is none', { ...valid, q: 'entity' }, 'q'],
    ['with an unknown field', { ...valid, q: 'x:1' }, 'q'],
    ['with a regular expression', { ...valid, q: 'entity:~o.*' }, 'q'],
    ['with a q of 4,097 characters', { ...valid, q: `actor:${'a'.repeat(4_091)}` }, 'q'],
    ['without subject', { q: 'entity:*' }, 'subject'],
    ['with an empty subject', { ...valid, subject: '' }, 'subject'],
    ['with a subject of 201 characters', { ...valid, subject: 'é'.repeat(201) }, 'subject'],
    ['with NUL in subject', { ...valid, subject: 'a\0' }, 'subject'],
    ['with half a character in subject', { ...valid, subject: 'a\ud800' }, 'subject'],
    ['with a number as subject', { ...valid, subject: 17 }, 'subject'],
    ['with no time', { ...valid, expiresIn: 0 }, 'expiresIn'],
    ['with 3,601 seconds', { ...valid, expiresIn: 3_601 }, 'expiresIn'],
    ['with a fraction of seconds', { ...valid, expiresIn: 1.5 }, 'expiresIn'],
    ['with seconds as text', { ...valid, expiresIn: '600' }, 'expiresIn'],
    ['with null', { ...valid, expiresIn: null }, 'expiresIn'],
    ['with paths as text', { ...valid, hide: 'card' }, 'hide'],
    ['with an empty path', { ...valid, hide: ['card', ''] }, 'hide.1'],
    ['with 101 paths', { ...valid, hide: Array.from({ length: 101 }, (_none, n) => `p${n}`) }, 'hide'],
    ['with actors as text', { ...valid, actors: 'false' }, 'actors'],
    ['with export as a number', { ...valid, export: 1 }, 'export'],
    ['with an unknown member', { ...valid, tenant: 'rival' }, 'tenant'],
    ['with scopes', { ...valid, scope: 'changelog.changelog_manage' }, 'scope'],
  ])('gets 400 with the member at fault: %s', async (_case, body, field) => {
    const { status, body: answer } = await make(body);
    expect({ status, answer }).toMatchObject({
      status: 400,
      answer: { type: 'validation_violation', details: [{ field }] },
    });
  });

  test('gets one of 3 KiB at most: a longer one is 400 that says so', async () => {
    const lengthOf = async (letters: number) => await make({ ...valid, q: `entityId:${'a'.repeat(letters)} entity:*` });
    let [fits, tooMany] = [0, 4_000];
    while (tooMany - fits > 1) {
      const middle = Math.floor((fits + tooMany) / 2);
      if ((await lengthOf(middle)).status === 201) fits = middle;
      else tooMany = middle;
    }
    const { token } = (await lengthOf(fits)).body;
    expect([token.length <= maxTokenLength, token.length > maxTokenLength - 4]).toEqual([true, true]);
    expect((await look(token, 'changes')).status).toBe(200);
    expect((await lengthOf(tooMany)).body.message).toMatch(
      /^The token would have 307\d characters, and it can have 3072:/,
    );
  });
});

describe('pages of every origin may look, whatever ANNALS_CORS_ORIGINS says', () => {
  test('a preflight needs no token; the rest of the service answers none', async () => {
    const preflight = {
      origin,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'authorization',
    };
    for (const path of [...reads.map((read) => `/viewer/acme/${read}?q=x`), '/viewer.js']) {
      const { status, headers: sent } = await server.call(path, { method: 'OPTIONS', headers: preflight });
      expect([path, status, sent.get('access-control-allow-origin')]).toEqual([path, 204, '*']);
      expect(sent.get('access-control-allow-headers')).toBe('authorization');
      expect(sent.get('access-control-allow-methods')).toBe('GET, HEAD');
      expect(sent.get('access-control-allow-credentials')).toBeNull();
    }
    const outside = await server.call('/changelog/acme/viewer-tokens', { method: 'OPTIONS', headers: preflight });
    expect([outside.status, outside.headers.get('access-control-allow-origin')]).toEqual([405, null]);
    expect((await server.call('/viewer/acme/changes', { method: 'OPTIONS' })).status).toBe(405);
  });

  test('they may read every answer, also why they were refused', async () => {
    for (const [path, token, status] of [
      ['/viewer/acme/changes', tokenOfC1, 200],
      ['/viewer/acme/changes?q=x', tokenOfC1, 400],
      ['/viewer/acme/changes', 'x', 401],
      ['/viewer/rival/changes', tokenOfC1, 403],
      ['/viewer/acme/nothing', tokenOfC1, 404],
      ['/viewer/acme/fails', tokenOfC1, 500],
    ] as const) {
      const { status: answered, headers: sent } = await server.call(path, { token, headers: { origin } });
      expect([path, answered, sent.get('access-control-allow-origin')]).toEqual([path, status, '*']);
      expect(sent.get('access-control-expose-headers')).toContain('Retry-After');
      expect(sent.getSetCookie()).toEqual([]);
    }
    const { headers: sent } = await server.call('/changelog/acme/changelogs', { token: maker, headers: { origin } });
    expect(sent.get('access-control-allow-origin')).toBeNull();
  });
});

describe('with `export` the changes of a query are a file', () => {
  const csv = { headers: { accept: 'text/csv' } };

  test('that has what an export has, masked', async () => {
    const client = await server.createClient('acme', {
      restriction: readRestriction([{ query: 'entity:order', hide: ['card'] }]),
    });
    const token = await server.tokenOf(client);
    const viewer = await made({ q: 'entity:*', export: true }, token);
    const found = await look(viewer, 'changes', {}, csv);
    expect(found.status).toBe(200);
    expect(found.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect(found.headers.get('vary')).toBe('Origin, Accept, Accept-Encoding');
    expect(found.headers.get('content-disposition')).toBe('attachment; filename="changes.csv"');
    const call = (path: string, init?: RequestInit) => server.call(path, { ...init, token });
    const id = await startExport(call, 'acme', { q: '', format: 'CSV' });
    await endOfJob(call, 'acme', id);
    expect(found.text).toBe(await contentOf(call, 'acme', id));
    expect(rowsOfCsv(found.text).map((row) => row[6])).toEqual(['actor', 'Jane', "'=1+1", 'John']);
    const filtered = await look(viewer, 'changes', { q: 'entityId:o2 entity:order' }, csv);
    expect(rowsOfCsv(filtered.text)).toHaveLength(2);
    const without = await look(await made({ q: 'entity:*', actors: false, export: true }), 'changes', {}, csv);
    expect(rowsOfCsv(without.text).map((row) => row[6])).toEqual(['actor', '', '', '', '']);
    const head = await server.call('/viewer/acme/changes', { method: 'HEAD', token: viewer, ...csv });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  test('alone, where `Accept` names it, and with q as its one parameter', async () => {
    const refused = await look(tokenOfC1, 'changes', {}, csv);
    // Without `Accept` a cache would serve the refusal to requests for a page.
    expect([refused.status, refused.headers.get('vary')]).toEqual([403, 'Origin, Accept']);
    const viewer = await made({ q: 'entity:*', export: true });
    for (const accept of ['*/*', 'text/*', 'application/json', 'text/csvx'])
      expect((await look(viewer, 'changes', {}, { headers: { accept } })).body.totalElements).toBe(4);
    for (const accept of ['application/json;q=0.1, text/csv', 'Text/CSV; header=present'])
      expect((await look(viewer, 'changes', {}, { headers: { accept } })).body).toBeUndefined();
    const paged = await look(viewer, 'changes', { page: '2', size: '1' }, csv);
    expect(paged.headers.get('vary')).toBe('Origin, Accept');
    expect([paged.status, paged.body.details.map(({ field }: { field: string }) => field)]).toEqual([
      400,
      ['page', 'size'],
    ]);
    expect((await look(viewer, 'changes', { q: 'x:1' }, csv)).status).toBe(400);
  });

  test('of a tenant 8 are under way; one more is 429 at once and takes no place', async () => {
    const tokens = await Promise.all(
      ['s1', 's2', 's3', 's4', 's5'].map((subject) => made({ q: 'entity:*', subject, export: true })),
    );
    const blocker = await server.database.pool.connect();
    await blocker.query('begin; lock table change_entry in access exclusive mode');
    const answers = tokens
      .flatMap((token, place) => (place < 4 ? [token, token] : [token]))
      .map((token) => look(token, 'changes', {}, csv));
    const first = await Promise.race(answers);
    await blocker.query('commit');
    blocker.release();
    expect([first.status, first.headers.get('retry-after')]).toEqual([429, '1']);
    expect(first.body.message).toContain('files of viewers: at most 8 at once.');
    expect((await Promise.all(answers)).map(({ status }) => status).toSorted()).toEqual([...Array(8).fill(200), 429]);
    expect((await look(tokens[0] ?? '', 'changes', {}, csv)).status).toBe(200);
  });

  test('of 10,000 changes; of more it is 400 that says how many there are', async () => {
    const many = await server.token('many');
    const record = createRecorder(server.context.db, 'many', () => now);
    const changes = Array.from({ length: 10_001 }, (_none, n) =>
      changeOf({ at: now - 1 - n, entity: n === 0 ? 'last' : 'order' }),
    );
    for (let begin = 0; begin < changes.length; begin += 2_000) await record(changes.slice(begin, begin + 2_000));
    const { body } = await make({ q: 'entity:*', subject: 'c1', export: true }, { token: many, tenant: 'many' });
    const file = async (q: string) =>
      await server.call(`/viewer/many/changes?${new URLSearchParams({ q })}`, { token: body.token, ...csv });
    expect(rowsOfCsv(await (await file('entity:order')).text())).toHaveLength(10_001);
    const refused = await file('');
    expect([refused.status, ((await refused.json()) as { message: string }).message]).toEqual([
      400,
      'q has 10001 changes, and a file at most 10000',
    ]);
  });
});

describe('the script of the viewer', () => {
  test.each(['identity', 'gzip', 'br'])('is for pages of every origin, and compressed before: %s', async (encoding) => {
    const accepted = { 'accept-encoding': encoding };
    const response = await fetch(`${server.baseUrl}/built/viewer.js`, { headers: accepted });
    const sent = response.headers;
    expect([response.status, await response.text()]).toEqual([200, script]);
    expect(sent.get('content-encoding')).toBe(encoding === 'identity' ? null : encoding);
    expect(sent.get('content-type')).toMatch(/^(text|application)\/javascript; charset=utf-8$/);
    expect(sent.get('cross-origin-resource-policy')).toBe('cross-origin');
    expect(sent.get('cache-control')).toBe('public, max-age=3600');
    const etag = sent.get('etag') ?? '';
    // Without `cache-control`, fetch would send `no-cache`.
    const known = { ...accepted, 'if-none-match': etag, 'cache-control': 'max-age=0' };
    const again = await fetch(`${server.baseUrl}/built/viewer.js`, { headers: known });
    expect([etag === '', again.status]).toEqual([false, 304]);
  });

  test('is the one file of its folder that is served; where it was not built the answer says so', async () => {
    for (const path of ['/built/viewer.js.map', '/built/viewer.js.gz', '/built/', '/built/viewer.js/x'])
      expect((await server.call(path)).status).toBe(404);
    expect((await server.call('/empty/viewer.js')).status).toBe(503);
    expect((await server.call('/viewer.js', { headers: { origin } })).headers.get('access-control-allow-origin')).toBe(
      '*',
    );
  });
});
