import { describe, expect, test } from 'vitest';
import { maxViews } from '../../../src/history/views/schemas.ts';
import { maxNameCharacters } from '../../../src/http/chosen-id.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { historyOf } from '../../support/server/schema-client.ts';
import { startTestServer } from '../../support/server/server.ts';
import { statementsWaiting } from '../../support/server/statements-waiting.ts';

const server = closeAfterAll(await startTestServer());
const token = await server.token('acme', { name: 'Jane Doe' });

interface Called {
  readonly tenant?: string;
  readonly as?: string;
  readonly body?: unknown;
}

async function call(method: string, path = '', { tenant = 'acme', as = token, body }: Called = {}) {
  const response = await server.call(`/changelog/${tenant}/views${path}`, {
    token: as,
    method,
    json: body,
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? null : JSON.parse(text), headers: response.headers };
}

const view = { name: 'Price changes', q: 'entity:product path:price', range: 'P7D' };
const times = { createdAt: expect.any(String), modifiedAt: expect.any(String) };

test('a view may ask who exactly, for whom and from where', async () => {
  const q = 'actorId:u-17 onBehalfOf:exists onBehalfOfId:(c-1, c-2) correlationId:req-1 context."user-agent":curl*';
  expect((await call('POST', '', { body: { ...view, id: 'who', q } })).status).toBe(201);
  expect((await call('GET', '/who')).body).toMatchObject({ q });
  expect((await call('PUT', '/who', { body: { ...view, q: 'correlationId:~req' } })).status).toBe(400);
  expect((await call('DELETE', '/who')).status).toBe(204);
});

test('a view is created, read, replaced and deleted', async () => {
  const made = await call('POST', '', { body: { id: 'prices', ...view, columns: ['at', 'actor'] } });
  expect([made.status, made.body]).toEqual([201, { id: 'prices' }]);
  expect(made.headers.get('location')).toBe('/changelog/acme/views/prices');
  expect((await call('GET', '/prices')).body).toEqual({
    id: 'prices',
    ...view,
    columns: ['at', 'actor'],
    position: expect.any(Number),
    metadata: { version: 1, ...times },
  });
  expect((await call('PUT', '/prices', { body: { ...view, name: 'Prices' } })).status).toBe(204);
  expect((await call('GET', '/prices')).body).toMatchObject({ name: 'Prices', metadata: { version: 2 } });
  expect((await call('GET', '/prices')).body).not.toHaveProperty('columns');
  expect((await call('DELETE', '/prices')).status).toBe(204);
  for (const method of ['GET', 'DELETE']) expect((await call(method, '/prices')).status).toBe(404);
});

test('the body of GET is accepted by PUT', async () => {
  await call('PUT', '/back', { body: view });
  const { body } = await call('GET', '/back');
  expect((await call('PUT', '/back', { body })).status).toBe(204);
  expect((await call('GET', '/back')).body).toEqual({ ...body, metadata: { ...body.metadata, version: 2, ...times } });
});

test('a missing id is generated, and the default range is the last 30 days', async () => {
  const { body } = await call('POST', '', { body: { name: 'All', q: '' } });
  expect((await call('GET', `/${body.id}`)).body).toMatchObject({ q: '', range: 'P30D' });
});

test('PUT creates a missing view; an old version, a version of no view and a taken id are 409', async () => {
  const made = await call('PUT', '/put', { body: view });
  expect([made.status, made.body, made.headers.get('location')]).toEqual([
    201,
    { id: 'put' },
    '/changelog/acme/views/put',
  ]);
  const at = (version: number) => ({ body: { ...view, metadata: { version } } });
  expect((await call('PUT', '/put', at(1))).status).toBe(204);
  const old = await call('PUT', '/put', at(1));
  expect([old.status, old.body.type]).toEqual([409, 'conflict_resource']);
  expect((await call('PUT', '/never', at(1))).status).toBe(409);
  expect((await call('POST', '', { body: { id: 'put', ...view } })).status).toBe(409);
});

test('each write is recorded under the name of the client', async () => {
  const body = { ...view, name: 'Seen' };
  await call('PUT', '/seen', { body });
  await call('PUT', '/seen', { body: { ...body, q: 'entity:order' } });
  await call('DELETE', '/seen');
  const { items } = await historyOf(server, { tenant: 'acme', token, q: 'entity:annals-view entityId:seen' });
  expect(items.map(({ type, actor, name }) => [type, actor, name])).toEqual([
    ['delete', 'Jane Doe', 'Seen'],
    ['update', 'Jane Doe', 'Seen'],
    ['create', 'Jane Doe', 'Seen'],
  ]);
  expect(items[1]?.paths.q).toEqual({ before: view.q, after: 'entity:order' });
});

test('a refused write is not recorded', async () => {
  const q = 'entity:annals-view entityId:refused';
  await call('PUT', '/refused', { body: { ...view, q: 'nothing:x' } });
  expect((await historyOf(server, { tenant: 'acme', token, q })).total).toBe(0);
});

test('changelog_read reads views, only changelog_manage writes them', async () => {
  await call('PUT', '/scoped', { body: view });
  const reader = await server.token('acme', { scope: 'changelog.changelog_read' });
  for (const path of ['', '/scoped']) expect((await call('GET', path, { as: reader })).status).toBe(200);
  expect((await call('POST', '', { as: reader, body: view })).status).toBe(403);
  expect((await call('PUT', '/scoped', { as: reader, body: view })).status).toBe(403);
  expect((await call('DELETE', '/scoped', { as: reader })).status).toBe(403);
  const agentToken = await server.token('acme', { scope: 'ai.agent_manage' });
  expect((await call('GET', '', { as: agentToken })).status).toBe(403);
});

test('the views of one tenant are not those of another', async () => {
  await call('PUT', '/own', { body: view });
  const as = await server.token('other', {});
  expect((await call('GET', '/own', { tenant: 'other', as })).status).toBe(404);
  expect((await call('GET', '', { tenant: 'other', as })).body).toEqual([]);
});

describe('the response is 400 and names the member if', () => {
  test.each<[string, object, string]>([
    ['the name is missing', { q: '' }, 'name'],
    ['the name is empty', { name: '', q: '' }, 'name'],
    ['the name has a control character', { name: 'a\nb', q: '' }, 'name'],
    ['the query is missing', { name: 'x' }, 'q'],
    ['a member is not known', { ...view, colour: 'red' }, 'colour'],
    ['the id has a slash', { ...view, id: 'a/b' }, 'id'],
    ['the id is two dots, which a path resolves', { ...view, id: '..' }, 'id'],
    ['a column is not known', { ...view, columns: ['at', 'price'] }, 'columns.1'],
    ['a column stands twice', { ...view, columns: ['at', 'at'] }, 'columns'],
    ['the columns are empty', { ...view, columns: [] }, 'columns'],
    ['the position is no number', { ...view, position: 'first' }, 'position'],
    ['the range has no form', { ...view, range: 'last week' }, 'range'],
    ['the range has no days', { ...view, range: 'P0D' }, 'range'],
    ['the range has a date that does not exist', { ...view, range: '2026-02-30T00:00:00Z/..' }, 'range'],
    ['the range has no beginning', { ...view, range: '../2026-02-01T00:00:00Z' }, 'range'],
    ['the range ends when it begins', { ...view, range: '2026-02-01T00:00:00Z/2026-02-01T01:00:00+01:00' }, 'range'],
  ])('%s', async (_case, body, field) => {
    const answer = await call('POST', '', { body });
    expect([answer.status, answer.body.type]).toEqual([400, 'validation_violation']);
    expect(answer.body.details.map((detail: { field: string }) => detail.field)).toContain(field);
  });

  test('the query is invalid: with the position', async () => {
    const { status, body } = await call('POST', '', { body: { ...view, q: 'entity:product price:3' } });
    expect([status, body.details[0].field]).toEqual([400, 'q']);
    expect(body.details[0].message).toMatch(/^At position 16: expected /);
  });

  test('the id in the body differs from the path', async () => {
    const { status, body } = await call('PUT', '/one', { body: { ...view, id: 'two' } });
    expect([status, body.details[0].field]).toEqual([400, 'id']);
  });
});

test.each([
  'today',
  'yesterday',
  'all',
  'P1D',
  'P36500D',
  '2026-02-01T00:00:00Z/..',
  '2026-02-01T00:00:00.000000001+01:00/2026-03-01T00:00:00Z',
])('the range %s is accepted', async (range) => {
  expect((await call('PUT', '/range', { body: { ...view, range } })).status).toBeLessThan(300);
  expect((await call('GET', '/range')).body.range).toBe(range);
});

test('more days than 36,500 are refused', async () => {
  expect((await call('PUT', '/range', { body: { ...view, range: 'P36501D' } })).status).toBe(400);
});

test('query and range are joined into one query, so a query that leaves no term for the range is refused', async () => {
  const terms = (count: number) => Array.from({ length: count }, () => 'actor:a').join(' ');
  expect((await call('PUT', '/full', { body: { ...view, q: terms(254) } })).status).toBe(201);
  expect((await call('PUT', '/full', { body: { ...view, q: terms(256) } })).status).toBe(400);
});

test(`a name has at most ${maxNameCharacters} characters of any kind`, async () => {
  const name = '😀'.repeat(maxNameCharacters);
  expect((await call('PUT', '/long', { body: { ...view, name } })).status).toBe(201);
  expect((await call('PUT', '/long', { body: { ...view, name: `${name}a` } })).status).toBe(400);
});

test('a new view comes last; PUT moves it or keeps its place', async () => {
  const as = await server.token('ordered', {});
  const caller = { tenant: 'ordered', as };
  const order = async () =>
    (await call('GET', '?sort=position&fields=name', caller)).body.map(({ id }: { id: string }) => id);
  for (const id of ['c', 'b', 'a']) await call('PUT', `/${id}`, { ...caller, body: view });
  expect(await order()).toEqual(['c', 'b', 'a']);
  await call('PUT', '/a', { ...caller, body: { ...view, position: 1.5 } });
  expect(await order()).toEqual(['c', 'a', 'b']);
  await call('PUT', '/a', { ...caller, body: { ...view, name: 'Renamed' } });
  expect(await order()).toEqual(['c', 'a', 'b']);
  // Two users move two views to the same place at once.
  const first = (id: string) => call('PUT', `/${id}`, { ...caller, body: { ...view, position: 0 } });
  await Promise.all([first('b'), first('a')]);
  expect(await order()).toEqual(['a', 'b', 'c']);
  await call('POST', '', { ...caller, body: { ...view, id: '0-last' } });
  expect(await order()).toEqual(['a', 'b', 'c', '0-last']);
});

test(`a tenant has at most ${maxViews} views, even if two are created at once`, async () => {
  const as = await server.token('full', {});
  const caller = { tenant: 'full', as };
  expect((await call('PUT', '/v0', { ...caller, body: view })).status).toBe(201);
  await server.database.pool.query(
    `insert into saved_view (tenant, id, version, document, fields)
       select tenant, 'copy' || n, version, document, fields from saved_view, generate_series(1, $1) n where tenant = 'full'`,
    [maxViews - 3],
  );
  expect((await call('PUT', '/v1', { ...caller, body: view })).status).toBe(201);
  // Another process creates the last one, and has not committed yet.
  const client = await server.database.pool.connect();
  try {
    await client.query(`begin; select from tenant where tenant = 'full' for no key update;
      insert into saved_view (tenant, id, version, document, fields)
        select tenant, 'last', version, document, fields from saved_view where tenant = 'full' and id = 'v0'`);
    let isAnswered = false;
    const beyond = call('POST', '', { ...caller, body: view }).finally(() => {
      isAnswered = true;
    });
    const isWaiting = async () =>
      (await statementsWaiting(server.database)).some((text) => /for no key update/i.test(text));
    for (let looks = 0; looks < 1_000 && !isAnswered && !(await isWaiting()); looks += 1);
    await client.query('commit');
    const { status, body } = await beyond;
    expect([status, body.message]).toEqual([400, expect.stringContaining('200 saved views')]);
  } finally {
    client.release(true);
  }
  expect((await call('PUT', '/v0', { ...caller, body: { ...view, name: 'Still' } })).status).toBe(204);
  expect((await call('PUT', '/new', { ...caller, body: view })).status).toBe(400);
  await call('DELETE', '/v0', caller);
  expect((await call('PUT', '/new', { ...caller, body: view })).status).toBe(201);
});
