import { describe, expect, test } from 'vitest';
import { showEntries } from '../../../src/history/entries/show-entries.ts';
import { maxHiddenLevels, mayHide } from '../../../src/history/search/path-predicate.ts';
import { hideLimits, parseOwnQuery, readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { scopes } from '../../../src/http/scopes.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf } from '../../support/server/history.ts';
import { type Call, contentOf, endOfJob, startExport } from '../../support/server/jobs.ts';
import { startTestRecorder } from '../../support/server/recorder.ts';
import { routesOf } from '../../support/server/routes-of.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const day = 86_400_000;

const before = (paths: Record<string, unknown>, more: Partial<Change>) =>
  changeOf({ at: now - 1_000, paths: JSON.stringify(paths), ...more });

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const all = await server.token('acme');
/** Sees orders, without cards. */
const orders = await restricted('entity:order', ['card', 'lines.secret']);
const recordAll = createRecorder(server.context.db, 'acme', () => now);
await recordAll([
  before(
    {
      'card.number': { after: 4111 },
      'card.holder': { after: null },
      price: { after: 5 },
      lines: { after: [{ secret: 1, sku: 'a' }] },
    },
    {
      type: 'create',
      entity: 'order',
      entityId: 'o1',
      actor: 'Jane',
      related: [{ entity: 'customer', entityId: 'c1' }],
    },
  ),
  before({ 'card.number': { before: 4111, after: 42 } }, { entity: 'order', entityId: 'o1', actor: 'John' }),
  before({ price: { before: 1, after: 2 } }, { entity: 'invoice', entityId: 'i1', actor: 'Hidden Harry' }),
  before({ total: { after: 1 } }, { type: 'create', entity: 'order', entityId: 'o0', at: now - 90 * day }),
]);

async function restricted(query: string, hide: readonly string[] = []): Promise<string> {
  return await server.token('acme', { restriction: readRestriction([{ query, hide }]) });
}

async function read(token: string, operation: string, parameters: Record<string, string> = {}) {
  const response = await server.call(`/changelog/acme/${operation}?${new URLSearchParams(parameters)}`, { token });
  return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) };
}

const total = async (token: string, q: string) => (await read(token, 'changelogs', { q })).body.totalElements;

describe('each operation is answered by the restriction or refused', () => {
  const history = '/changelog/:tenant';
  const jobs = '/ai-service/:tenant/jobs';
  const applied = [
    ...['changelogs', 'documents', 'entries', 'facets', 'histogram', 'names'].map((one) => `GET ${history}/${one}`),
    ...[`GET ${jobs}`, `GET ${jobs}/:id`, `GET ${jobs}/:id/content`, `POST ${jobs}`, `DELETE ${jobs}/:id`],
    ...[`POST ${jobs}/search`, `POST ${history}/viewer-tokens`, 'POST /mcp/:tenant'],
  ];

  /** They reveal no tenant, or accept only a console session. */
  const ofNoTenant = [
    ...[
      '',
      '.well-known/jwks.json',
      'health/live',
      'health/ready',
      'openapi.json',
      'openai/openapi.json',
      'anthropic/openapi.json',
      'viewer.js',
    ].map((one) => `GET /${one}`),
    ...[
      '',
      '/',
      '/guides',
      '/guides/',
      '/guides/*',
      '/guides/images/*',
      '/guides/search.json',
      '/site/*',
      '/viewer/*',
    ].map((one) => `GET /docs${one}`),
    ...['GET /console', 'GET /console/*', 'GET /console/assets/*', 'POST /oauth/token', 'OPTIONS *'],
    ...['DELETE', 'GET', 'POST'].map((method) => `${method} /console/api/session`),
    ...[
      'GET /console/api/session/grants',
      'GET /console/api/session/keys',
      'POST /console/api/session/keys',
      'DELETE /console/api/session/grants/:id',
      'DELETE /console/api/session/keys/:id',
    ],
  ];

  test('an operation not in this list is 403, whatever scopes the client has', async () => {
    const client = await server.createClient('acme', {
      restriction: readRestriction([{ query: 'entity:order', hide: [] }]),
    });
    await server.database.pool.query('update oauth_client set scopes = $1 where client_id = $2', [
      scopes,
      client.clientId,
    ]);
    const token = await server.tokenOf(client);
    const recorder = await startTestRecorder(server);
    const answered = new Set<string>();
    const untold = new Set<string>();
    for (const [app, baseUrl] of [
      [server.app, server.baseUrl],
      [recorder.app, recorder.baseUrl],
    ] as const) {
      for (const { method, path } of routesOf(app)) {
        const route = `${method === 'HEAD' ? 'GET' : method} ${path}`;
        if (!path.includes(':tenant')) {
          untold.add(route);
          continue;
        }
        const target = path.replace(':tenant', 'acme').replaceAll(/:\w+/g, '1');
        const { status, body } = await fetch(`${baseUrl}${target}`, {
          method,
          headers: { authorization: `Bearer ${token}` },
        });
        await body?.cancel();
        // The viewer's reads accept only viewer tokens.
        if (status !== (path.startsWith('/viewer/') ? 401 : 403)) answered.add(route);
      }
    }
    await recorder.close();
    expect([...answered].sort()).toEqual(applied.sort());
    expect([...untold].sort()).toEqual(ofNoTenant.sort());
    for (const path of ['changelogs', 'entries'])
      expect((await read(token, path, { context: 'true', ref: 'x' })).status).toBe(403);
  });
});

describe("the caller's own query", () => {
  test('is joined as a tree: no OR or parenthesis escapes the restriction', async () => {
    for (const q of [
      '',
      'compoundLogicalQuery:((entity:invoice) OR (type:update))',
      'entity:*',
      'entityId:i1 entity:*',
      'entity:~.*',
    ]) {
      const { body } = await read(orders, 'changelogs', { q });
      expect({
        q,
        entities: [...new Set(body.items.map(({ entity }: { entity: string }) => entity))],
      }).not.toMatchObject({ entities: expect.arrayContaining(['invoice']) });
    }
    expect((await read(orders, 'changelogs', { q: 'type:update) OR (entity:invoice' })).status).toBe(400);
    const either = await restricted('compoundLogicalQuery:((entity:order) OR (entity:invoice))');
    expect(await total(either, 'entity:invoice')).toBe(1);
    expect(await total(either, 'type:create')).toBe(1);
  });

  test('alone sets the window, and its errors quote nothing else', async () => {
    const old = await restricted('occurredAt:>="2020-01-01T00:00:00Z"');
    expect([await total(old, ''), await total(old, 'occurredAt:>="2020-01-01T00:00:00Z"')]).toEqual([3, 4]);
    const recent = await restricted('occurredAt:>="2026-09-15T00:00:00Z"');
    const { from, to } = (await read(recent, 'histogram', { q: 'entity:none' })).body;
    expect([from, to]).toEqual([new Date(now - 30 * day).toISOString(), new Date(now).toISOString()]);
    const fault = await read(orders, 'changelogs', { q: 'type:update entityId:o1' });
    expect(fault.body.details).toEqual([{ field: 'q', message: expect.stringMatching(/^At position 13: /) }]);
    expect(fault.body.message).toBe('entity is required when entityId is provided');
  });
});

describe('hidden data cannot be inferred', () => {
  test('from a ref of another credential, or from Server-Timing', async () => {
    const { body } = await read(all, 'changelogs', { q: 'entity:invoice', ref: 'true' });
    const hidden = await read(orders, 'entries', { ref: body.items[0].ref });
    expect([hidden.status, hidden.body.message]).toEqual([404, 'This change is not kept any more.']);
    for (const [operation, parameters] of [
      ['changelogs', {}],
      ['histogram', {}],
      ['facets', { field: 'path' }],
      ['documents', { entity: 'order', entityId: 'o1' }],
    ] as const) {
      expect((await read(orders, operation, parameters)).headers.has('server-timing')).toBe(false);
      expect((await read(all, operation, parameters)).headers.has('server-timing')).toBe(true);
    }
  });

  test('names and documents are those of the entity types; any other restriction has none', async () => {
    expect((await read(orders, 'names', { field: 'actor' })).body.values).toEqual(['Jane', 'Jane Doe', 'John']);
    expect((await read(orders, 'names', { field: 'entity' })).body.values).toEqual(['order']);
    expect((await read(orders, 'names', { field: 'path', entity: 'invoice' })).body.values).toEqual([]);
    const invoice = await read(orders, 'documents', { entity: 'invoice', entityId: 'i1' });
    const none = await read(orders, 'documents', { entity: 'invoice', entityId: 'none' });
    expect([invoice.status, invoice.body]).toEqual([404, none.body]);
    const named = await restricted('entity:order entityId:o1');
    expect((await read(named, 'documents', { entity: 'order', entityId: 'o1' })).body.changes).toBe(2);
    for (const [query, operation] of [
      ['entity:order entityId:o1', 'names'],
      ['entity:order type:update', 'names'],
      ['entity:order entityId:o1 type:update', 'documents'],
      ['related.entityId:c1', 'documents'],
      ['entity:order entityId:o0', 'documents'],
    ] as const) {
      const token = await restricted(query);
      const { status } = await read(token, operation, { field: 'entity', entity: 'order', entityId: 'o1' });
      expect({ query, operation, status }).toEqual({ query, operation, status: 403 });
    }
  });

  test('hidden values are masks in entries and documents, and no query finds them', async () => {
    const { items } = (await read(orders, 'changelogs', { q: 'type:create' })).body;
    expect(items[0].paths).toEqual({
      'card.number': { after: '********' },
      'card.holder': { after: null },
      price: { after: 5 },
      lines: { after: [{ secret: '********', sku: 'a' }] },
    });
    const { document } = (await read(orders, 'documents', { entity: 'order', entityId: 'o1' })).body;
    expect(document).toEqual({
      card: { number: '********', holder: null },
      price: 5,
      lines: [{ secret: '********', sku: 'a' }],
    });
    const found = async (term: string) => [
      await total(all, `change:elemMatch(${term})`),
      await total(orders, `change:elemMatch(${term})`),
    ];
    expect(await found('path:card.number after:4111')).toEqual([1, 0]);
    expect(await found('after:<=42')).toEqual([3, 1]);
    expect(await found('path:card.number is:lower')).toEqual([1, 0]);
    expect(await found('path:card.number after:exists')).toEqual([2, 2]);
    expect(await found('path:card.holder after:null')).toEqual([1, 1]);
    expect(await found('path:card.number')).toEqual([2, 2]);
    expect(await total(orders, 'path:card')).toBe(2);
  });

  test('arrays in very many others break no query on values: what is in more than 100 counts as masked', async () => {
    const nested = (depth: number) => JSON.parse(`${'['.repeat(depth)}"deep${depth}"${']'.repeat(depth)}`);
    const levels = [maxHiddenLevels, maxHiddenLevels + 1, 3_000];
    const record = createRecorder(server.context.db, 'nested', () => now);
    const whole = await server.token('nested');
    await record(
      levels.map((one) =>
        changeOf({ at: now, entity: 'order', paths: `{"a":{"after":${JSON.stringify(nested(one))}}}` }),
      ),
    );
    const part = await server.token('nested', { restriction: readRestriction([{ query: '', hide: ['b'] }]) });
    const found = async (token: string, levelsOf: number) => {
      const q = new URLSearchParams({ q: `change:elemMatch(after:deep${levelsOf})` });
      const { totalElements } = (await (await server.call(`/changelog/nested/changelogs?${q}`, { token })).json()) as {
        totalElements: number;
      };
      return totalElements;
    };
    expect(await Promise.all(levels.slice(0, 2).map((one) => found(whole, one)))).toEqual([1, 1]);
    expect(await Promise.all(levels.map((one) => found(part, one)))).toEqual([1, 0, 0]);
  });

  test('exports have what the list has, and jobs are those of the client alone', async () => {
    const callAs =
      (token: string): Call =>
      (path, init) =>
        server.call(path, { ...init, token });
    const theirs = await startExport(callAs(all), 'acme', { q: '', format: 'NDJSON' });
    for (const file of [{ format: 'NDJSON' }, { format: 'CSV' }, { format: 'CSV', rows: 'field' }]) {
      const id = await startExport(callAs(orders), 'acme', { q: 'type:create', ...file });
      expect(await endOfJob(callAs(orders), 'acme', id)).toMatchObject({ status: 'success', metadata: { entries: 1 } });
      const text = await contentOf(callAs(orders), 'acme', id);
      expect([text.includes('4111'), text.includes('********'), text.includes('invoice')]).toEqual([
        false,
        true,
        false,
      ]);
    }
    const jobs = (await (await callAs(orders)('/ai-service/acme/jobs')).json()) as { id: string }[];
    expect([jobs.length, jobs.some(({ id }) => id === theirs)]).toEqual([3, false]);
    for (const path of [`/ai-service/acme/jobs/${theirs}`, `/ai-service/acme/jobs/${theirs}/content`]) {
      expect((await callAs(orders)(path)).status).toBe(404);
    }
    expect(await startExport(callAs(orders), 'acme', { q: 'actor:x entityId:1', format: 'CSV' }).catch(String)).toMatch(
      /400.*At position 9/,
    );
    const withContext = { type: 'EXPORT', format: 'CSV', context: true };
    const headers = { 'content-type': 'application/json' };
    const request = { method: 'POST', headers, body: JSON.stringify(withContext) };
    expect((await callAs(orders)('/ai-service/acme/jobs', request)).status).toBe(403);
  });

  test('actors cannot be inferred where they are hidden', async () => {
    const restriction = readRestriction([{ query: '', hide: [], actors: false }]);
    for (const q of ['actor:Jane', 'type:update compoundLogicalQuery:((type:create) OR (actor:J*))']) {
      expect(() => parseOwnQuery(q, { restriction })).toThrow(/expected no term on actor/);
      expect(() => readRestriction([...restriction.written, { query: q, hide: [] }])).toThrow(
        /expected no term on actor/,
      );
    }
    const row = {
      at: now,
      type: 'update',
      entity: 'order',
      entityId: '1',
      name: null,
      schemaVersion: null,
      related: null,
    };
    const found = { plan: 'search' as const, total: 1, entries: [{ ...row, actor: 'Jane', paths: '{}' }] };
    const { entries } = await showEntries(server.context.sealer, 'acme', found, { restriction });
    expect(entries).toEqual([{ ...row, paths: '{}' }]);
    const request = { entity: 'order', entityId: 'o1', when: { changes: 1 }, restriction };
    const { found: document } = await server.context.historyReads.document('acme', request);
    expect(document.lastChange).toEqual({ at: now - 1_000, type: 'create' });
    // The server checks answers against its OpenAPI document.
    const token = await server.token('acme', { restriction });
    const answer = await server.call('/changelog/acme/documents?entity=order&entityId=o1&changes=1', { token });
    expect(await answer.json()).toMatchObject({
      lastChange: { at: new Date(now - 1_000).toISOString(), type: 'create' },
    });
  });
});

describe('a restriction is checked as a whole', () => {
  test.each([
    ['a query that is none', { query: 'entity', hide: [] }, 'The query is not valid at position 1: expected a field'],
    ['an unknown field', { query: 'type:update x:1', hide: [] }, 'at position 13: expected entity, entityId'],
    [
      'a regular expression',
      { query: 'type:update entity:~o.*', hide: [] },
      'at position 13: expected a term without a regular',
    ],
    [
      'one on a path',
      { query: 'change:elemMatch(path:~x)', hide: [] },
      'at position 18: expected a term without a regular',
    ],
    ['one in a group', { query: 'compoundLogicalQuery:((type:update) OR (actor:~x))', hide: [] }, 'position 41'],
    ['an entityId without entity', { query: 'entityId:1', hide: [] }, 'position 1'],
    ['a query of 4,097 characters', { query: `actor:${'a'.repeat(4_091)}`, hide: [] }, 'position 4097'],
    ['257 terms', { query: 'type:update '.repeat(257), hide: [] }, 'no more than 256 terms'],
    [
      '101 paths',
      { query: '', hide: Array.from({ length: hideLimits.paths + 1 }, (_none, n) => `p${n}`) },
      'hide has more than 100',
    ],
    [
      '201 characters',
      { query: '', hide: ['ok', 'a'.repeat(hideLimits.characters + 1)] },
      'hide.1 has more than 200 characters',
    ],
    ['an empty path', { query: '', hide: [''] }, 'hide.0 is empty'],
    ['a wrong escape', { query: '', hide: ['a\\b'] }, 'hide.0 has a backslash'],
    ['NUL', { query: '', hide: ['a\0'] }, 'hide.0 has a character that is no text'],
  ])('%s is refused', (_case, written, message) => {
    expect(() => readRestriction([written])).toThrow(message);
  });

  test('a restriction at the limits is accepted', () => {
    const hide = Array.from({ length: hideLimits.paths }, (_none, n) => `${n}`.padEnd(hideLimits.characters, 'a'));
    expect(readRestriction([{ query: `actor:${'a'.repeat(4_090)}`, hide }]).hide).toHaveLength(hideLimits.paths);
    expect(readRestriction([{ query: 'type:update '.repeat(256), hide }]).query.operands).toHaveLength(256);
  });

  test('a stored restriction that is unreadable is a server error, and grants nothing', async () => {
    const client = await server.createClient('acme', { restriction: readRestriction([{ query: '', hide: [] }]) });
    await server.database.pool.query(
      `update oauth_client set restriction = '[{"query": "x:1", "hide": []}]' where client_id = $1`,
      [client.clientId],
    );
    const { status, body } = await read(await server.tokenOf(client), 'changelogs');
    expect([status, JSON.stringify(body)]).toEqual([500, expect.not.stringContaining('position')]);
  });
});

test('a path outside every pattern is shown, and need not be masked', () => {
  const { hide } = readRestriction([{ query: '', hide: ['card.no', '7.x'] }]);
  const paths = ['card', 'card.no', '0.card', '.card', 'cards', 'price.card', '7.y', '0', 'x.7'];
  expect(paths.filter((path) => mayHide(hide, path))).toEqual(['card', 'card.no', '0.card', '.card', '7.y', '0']);
  expect(mayHide(readRestriction([{ query: '', hide: ['*.no'] }]).hide, 'price')).toBe(true);
});
