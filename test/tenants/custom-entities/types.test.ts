import { describe, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { historyOf, schemaClient } from '../../support/server/schema-client.ts';
import { startTestServer } from '../../support/server/server.ts';

const server = closeAfterAll(await startTestServer());
const token = await server.token('acme', { name: 'Jane Doe' });
const client = schemaClient(server, 'acme', token);

test('a type is made, shown, replaced and deleted', async () => {
  const made = await client.post('', { id: 'CLAIM', name: { en: 'Claim', de: 'Reklamation' } });
  expect([made.status, made.body]).toEqual([201, { id: 'CLAIM' }]);
  expect(made.headers.get('location')).toBe('/schema/acme/custom-entities/CLAIM');
  expect((await client.get('/CLAIM')).body).toEqual({
    id: 'CLAIM',
    name: { en: 'Claim', de: 'Reklamation' },
    metadata: { version: 1, createdAt: expect.any(String), modifiedAt: expect.any(String) },
  });
  expect((await client.put('/CLAIM', { name: { en: 'Warranty claim' } })).status).toBe(204);
  expect((await client.get('/CLAIM')).body).toMatchObject({ name: { en: 'Warranty claim' }, metadata: { version: 2 } });
  expect((await client.remove('/CLAIM')).status).toBe(204);
  expect((await client.get('/CLAIM')).status).toBe(404);
  expect((await client.remove('/CLAIM')).status).toBe(404);
});

test('PUT makes a type that is not there, and an old version is 409', async () => {
  const made = await client.put('/MADE', { id: 'MADE', name: { en: 'Made' } });
  expect([made.status, made.body]).toEqual([201, { id: 'MADE' }]);
  expect((await client.put('/MADE', { name: { en: 'Two' }, metadata: { version: 1 } })).status).toBe(204);
  const old = await client.put('/MADE', { name: { en: 'Three' }, metadata: { version: 1 } });
  expect([old.status, (old.body as { type: string }).type]).toEqual([409, 'conflict_resource']);
  expect((await client.put('/NEVER', { name: { en: 'Never' }, metadata: { version: 1 } })).status).toBe(409);
});

test('an id that is taken is 409', async () => {
  await client.type('TAKEN');
  expect((await client.post('', { id: 'TAKEN', name: { en: 'Again' } })).status).toBe(409);
});

test.each(['claim', '1CLAIM', '_CLAIM', 'CLAIM-1', 'CLÄIM', '', 'C'.repeat(64)])('the id "%s" is 400', async (id) => {
  const answer = await client.post('', { id, name: { en: 'x' } });
  expect([answer.status, answer.body]).toEqual([
    400,
    expect.objectContaining({ details: [expect.objectContaining({ field: 'id' })] }),
  ]);
});

test.each([
  ['no name', { id: 'X' }, 'name'],
  ['a name that is a text', { id: 'X', name: 'X' }, 'name'],
  ['an empty map', { id: 'X', name: {} }, 'name'],
  ['a name in no text', { id: 'X', name: { en: 1 } }, 'name.en'],
  ['an id that is no text', { id: 1, name: { en: 'X' } }, 'id'],
  ['a field that types do not have', { id: 'X', name: { en: 'X' }, colour: 'red' }, 'colour'],
  ['a schema that is none', { id: 'X', name: { en: 'X' }, jsonSchema: 'string' }, 'jsonSchema'],
])('%s is 400 with a detail', async (_case, body, field) => {
  const answer = await client.post('', body);
  expect(answer.status).toBe(400);
  expect(answer.body).toMatchObject({ type: 'validation_violation', details: [{ field }] });
});

test('a body that differs from the path is 400', async () => {
  const answer = await client.put('/ONE', { id: 'OTHER', name: { en: 'x' } });
  expect(answer.body).toMatchObject({ status: 400, details: [{ field: 'id' }] });
});

test('a type with instances is not deleted', async () => {
  await client.type('FULL');
  await client.post('/FULL/instances', { id: 'one' });
  expect(await client.remove('/FULL')).toMatchObject({ status: 400, body: { type: 'validation_violation' } });
  await client.remove('/FULL/instances/one');
  expect((await client.remove('/FULL')).status).toBe(204);
});

test('lists of types are paged', async () => {
  for (const id of ['PAGED_A', 'PAGED_B', 'PAGED_C']) await client.type(id);
  const first = await client.get('?q=id:PAGED_*&pageSize=2&sort=_id:DESC');
  expect((first.body as { id: string }[]).map(({ id }) => id)).toEqual(['PAGED_C', 'PAGED_B']);
  const next = first.headers.get('x-next-cursor');
  const second = await client.get(`?q=id:PAGED_*&pageSize=2&sort=_id:DESC&next=${next}`);
  expect((second.body as { id: string }[]).map(({ id }) => id)).toEqual(['PAGED_A']);
});

test('every write of a type is recorded', async () => {
  await client.post('', { id: 'RECORDED', name: { de: 'Eins' } });
  await client.put('/RECORDED', { name: { de: 'Zwei' } });
  await client.remove('/RECORDED');
  await client.put('/RECORDED', { name: { de: 'Drei' } });
  const { items } = await historyOf(server, { tenant: 'acme', token, q: 'entity:custom-entity entityId:RECORDED' });
  expect(items.map(({ type, name, actor }) => [type, name, actor])).toEqual([
    ['create', 'Drei', 'Jane Doe'],
    ['delete', 'Zwei', 'Jane Doe'],
    ['update', 'Zwei', 'Jane Doe'],
    ['create', 'Eins', 'Jane Doe'],
  ]);
  expect(items[2]?.paths['name.de']).toEqual({ before: 'Eins', after: 'Zwei' });
});

describe('scopes', () => {
  test.each([
    ['schema.schema_read', 200, 403],
    ['schema.schema_manage', 200, 201],
    ['schema.custominstance_manage', 403, 403],
  ])('%s: reading is %d, writing %d', async (scope, reading, writing) => {
    const limited = schemaClient(server, 'acme', await server.token('acme', { scope }));
    expect((await limited.get('')).status).toBe(reading);
    expect((await limited.put(`/SCOPED_${writing}_${reading}`, { name: { en: 'x' } })).status).toBe(writing);
  });

  test('nothing of another tenant is seen', async () => {
    await client.type('MINE');
    const umbrella = schemaClient(server, 'umbrella', await server.token('umbrella'));
    expect((await umbrella.get('/MINE')).status).toBe(404);
    expect((await umbrella.get('')).body).toEqual([]);
    expect((await schemaClient(server, 'acme', await server.token('umbrella')).get('/MINE')).status).toBe(403);
  });
});

test.each([
  [10, 10],
  [11, 10],
])('of %i fields that a type does not have the first %i are reported', async (wrong, reported) => {
  const fields = Object.fromEntries(Array.from({ length: wrong }, (_, index) => [`field${index}`, 1]));
  const refused = await client.post('', { id: 'FIELDS', name: { en: 'Fields' }, ...fields });
  expect(refused.status).toBe(400);
  expect(refused.body).toHaveProperty('details.length', reported);
});
