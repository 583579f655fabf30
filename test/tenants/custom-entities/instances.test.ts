import { describe, expect, test } from 'vitest';
import { maxInlineCharacters } from '../../../src/core/fairness/threads.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { schemaClient } from '../../support/server/schema-client.ts';
import { startTestServer } from '../../support/server/server.ts';

const server = closeAfterAll(await startTestServer());
const token = await server.token('acme', { name: 'Jane Doe' });
const client = schemaClient(server, 'acme', token);
await client.type('THING');

const at = (id: string) => `/THING/instances/${encodeURIComponent(id)}`;

describe('writing', () => {
  test('POST answers 201 with the id, given or drawn', async () => {
    const made = await client.post('/THING/instances', { id: 'given', name: { en: 'Given' }, n: 1 });
    expect([made.status, made.body]).toEqual([201, { id: 'given' }]);
    expect(made.headers.get('location')).toBe('/schema/acme/custom-entities/THING/instances/given');
    expect((await client.post('/THING/instances', { id: 'given' })).status).toBe(409);
    const drawn = await client.post('/THING/instances', {});
    expect(drawn).toMatchObject({ status: 201, body: { id: expect.stringMatching(/^[0-9a-f-]{36}$/) } });
  });

  test('an instance has id, name, metadata and any further fields', async () => {
    await client.post('/THING/instances', { id: 'shown', name: 'Shown', n: 1, deep: { list: [1, { a: null }] } });
    expect((await client.get(at('shown'))).body).toEqual({
      id: 'shown',
      name: 'Shown',
      metadata: {
        version: 1,
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        modifiedAt: expect.any(String),
      },
      n: 1,
      deep: { list: [1, { a: null }] },
    });
  });

  test('values come back as they were written', async () => {
    const written =
      '"a":9007199254740993,"b":1.10,"c":-0,"d":1e400,"e":"\\u00e9\\u0000\\u0001\\u001f\\"","f":[1.0,{"g":1E+2}],"__proto__":{"x":1},"constructor":"c","toString":1';
    await client.post('/THING/instances', `{"id":"exact", ${written} }`);
    expect((await client.get(at('exact'))).text).toContain(written);
    await client.patch(at('exact'), [{ op: 'add', path: '/h', value: 1 }]);
    const patched = (await client.get(at('exact'))).text;
    for (const member of [
      '"a":9007199254740993',
      '"b":1.10',
      '"c":-0',
      '"d":1e400',
      '[1.0,{"g":1E+2}]',
      '"__proto__":{"x":1}',
      '"constructor":"c"',
    ]) {
      expect(patched).toContain(member);
    }
  });

  test('the id bulk is reserved: no operation on many instances reaches one of that name', async () => {
    for (const response of [
      await client.post('/THING/instances', { id: 'bulk' }),
      await client.put(at('bulk'), { n: 1 }),
      await client.put(at('bulk'), [{ id: 'a' }]),
    ]) {
      expect(response).toMatchObject({ status: 400 });
    }
    expect(await client.post('/THING/instances', { id: 'bulk' })).toMatchObject({
      body: { details: [{ field: 'id', message: expect.stringContaining('not be bulk, which is reserved') }] },
    });
    expect((await client.get(at('bulk'))).status).toBe(404);
    expect((await client.patch(at('bulk'), [{ op: 'add', path: '/n', value: 1 }])).status).toBe(404);
    const many = { token, method: 'DELETE', headers: { 'content-type': 'application/json' }, body: '["a","b"]' };
    const remove = async (init: object) =>
      (await server.call(`/schema/acme/custom-entities${at('bulk')}`, { token, method: 'DELETE', ...init })).status;
    expect([await remove({}), await remove(many)]).toEqual([404, 404]);
    // One from before the id was reserved can be read and deleted by its id alone.
    await server.database.pool.query(
      `insert into custom_instance (tenant, type, id, version, document, fields)
         select tenant, type, 'bulk', version, document, fields from custom_instance where tenant = 'acme' and id = 'given'`,
    );
    expect((await client.get(at('bulk'))).status).toBe(200);
    expect([await remove(many), await remove({})]).toEqual([404, 204]);
  });

  test('PUT makes (201) or replaces (204)', async () => {
    const made = await client.put(at('put'), { n: 1, m: 1 });
    expect([made.status, made.body]).toEqual([201, { id: 'put' }]);
    expect((await client.put(at('put'), { id: 'put', n: 2 })).status).toBe(204);
    const { body } = await client.get(at('put'));
    expect(body).toMatchObject({ id: 'put', n: 2, metadata: { version: 2 } });
    expect(body).not.toHaveProperty('m');
  });

  test('DELETE answers 204, and 404 where there is nothing', async () => {
    await client.put(at('gone'), {});
    expect((await client.remove(at('gone'))).status).toBe(204);
    expect((await client.remove(at('gone'))).status).toBe(404);
    expect((await client.get(at('gone'))).status).toBe(404);
    expect((await client.patch(at('gone'), [])).status).toBe(404);
  });

  test('of a type that is not there: 404', async () => {
    for (const answer of [
      await client.post('/NOTHING/instances', {}),
      await client.put('/NOTHING/instances/a', {}),
      await client.patch('/NOTHING/instances/a', []),
      await client.remove('/NOTHING/instances/a'),
      await client.get('/NOTHING/instances/a'),
      await client.get('/NOTHING/instances'),
      await client.post('/NOTHING/instances/search', {}),
    ]) {
      expect(answer).toMatchObject({ status: 404, body: { type: 'resource_not_found' } });
    }
  });

  test.each(['a/b', 'ä b', '😀', '..', '%', 'a?b#c', '_', 'x'.repeat(255), '😀'.repeat(63)])(
    'the id "%s" will do',
    async (id) => {
      expect((await client.post('/THING/instances', { id })).status).toBe(201);
      if (id !== '..') expect((await client.get(at(id))).body).toMatchObject({ id });
    },
  );

  test.each([
    ['an empty id', { id: '' }, 'id'],
    ['an id that is no text', { id: 7 }, 'id'],
    ['an id of more than 255 bytes', { id: 'x'.repeat(256) }, 'id'],
    ['an id with control characters', { id: 'a\u0000b' }, 'id'],
    ['a name that is a number', { name: 7 }, 'name'],
    ['a name in no text', { name: { en: 7 } }, 'name'],
    ['metadata that is none', { metadata: 7 }, 'metadata'],
    ['a version that is none', { metadata: { version: '1' } }, 'metadata.version'],
    ['a version of 0', { metadata: { version: 0 } }, 'metadata.version'],
    ['a field called _id', { _id: 'x' }, '_id'],
  ])('%s is 400 with a detail', async (_case, body, field) => {
    const answer = await client.post('/THING/instances', body);
    expect(answer).toMatchObject({ status: 400, body: { type: 'validation_violation', details: [{ field }] } });
  });

  test.each([
    ['no object', '[]'],
    ['no JSON', '{"a":}'],
    ['half of a surrogate pair', '{"a":"\\ud800"}'],
    ['half of one in a key', '{"\\udc00":1}'],
    ['a number of more than 500 digits', `{"a":${'9'.repeat(501)}}`],
    ['a number out of all bounds', '{"a":1e10000}'],
    ['a number next to nothing', '{"a":1e-1000000}'],
  ])('%s is 400', async (_case, body) => {
    expect((await client.put(at('bad'), body)).status).toBe(400);
    expect((await client.get(at('bad'))).status).toBe(404);
  });

  test('numbers up to the limits are taken', async () => {
    const body = `{"a":${'9'.repeat(500)},"b":1e9999,"c":-1.5e-9999,"d":0e99999}`;
    expect((await client.put(at('limits'), body)).status).toBe(201);
    expect(
      (await client.get(`/THING/instances?q=${encodeURIComponent('b:1e9999 a:exists id:limits')}&sort=a,b,c,d`)).body,
    ).toHaveLength(1);
  });

  test("further members of metadata are kept; times and version are the service's", async () => {
    await client.put(at('meta'), { metadata: { createdAt: 'x', modifiedAt: 'y', tags: ['a'] } });
    expect((await client.get(at('meta'))).body).toMatchObject({
      metadata: { version: 1, createdAt: expect.stringContaining('Z'), tags: ['a'] },
    });
  });
});

describe('selecting fields', () => {
  test('fields shows those alone, and the id', async () => {
    await client.type('WIDE');
    await client.put(
      '/WIDE/instances/a',
      '{"name":"A","price":{"amount":1.10,"currency":"EUR"},"lines":[{"sku":"x","n":1},7]}',
    );
    const shown = async (fields: string) => (await client.get(`/WIDE/instances?fields=${fields}`)).text;
    expect(await shown('name')).toBe('[{"id":"a","name":"A"}]');
    expect(await shown('price.amount,lines.sku,nothing')).toBe(
      '[{"id":"a","price":{"amount":1.10},"lines":[{"sku":"x"}]}]',
    );
    expect((await client.post('/WIDE/instances/search?fields=name', {})).text).toBe('[{"id":"a","name":"A"}]');
    expect((await client.get('/WIDE/instances?fields=')).status).toBe(400);
  });

  test('a field has at most as many keys as a document has levels', async () => {
    await client.type('DEEP');
    const keys = (count: number) => Array.from({ length: count }, () => 'a');
    const document = keys(99).reduce((inner, key) => `{"${key}":${inner}}`, '{"a":1,"b":2}');
    // A long page is written in a worker thread, to which the fields are copied.
    const long = JSON.stringify('x'.repeat(maxInlineCharacters));
    await client.put('/DEEP/instances/a', `{"name":${long},"a":${document.slice(5, -1)}}`);
    const shown = async (count: number) => await client.get(`/DEEP/instances?fields=${keys(count).join('.')}`);
    expect((await shown(100)).text).toBe(`[{"id":"a","a":${document.slice(5, -1).replace(',"b":2', '')}}]`);
    // The copy of the second one would have more levels than the stack has room for.
    for (const count of [101, 5_500, 32_000]) {
      expect(await shown(count)).toMatchObject({
        status: 400,
        body: { message: 'a field must have at most 100 keys' },
      });
    }
  });
});

describe('scopes', () => {
  test.each([
    ['schema.custominstance_read', 200, 403],
    ['schema.custominstance_manage', 200, 204],
    ['schema.schema_manage', 403, 403],
  ])('%s: reading is %d, writing %d', async (scope, reading, writing) => {
    await client.put(at('scoped'), {});
    const limited = schemaClient(server, 'acme', await server.token('acme', { scope }));
    expect((await limited.get('/THING/instances')).status).toBe(reading);
    expect((await limited.post('/THING/instances/search', {})).status).toBe(reading);
    expect((await limited.put(at('scoped'), {})).status).toBe(writing);
    expect((await limited.patch(at('scoped'), [])).status).toBe(writing);
  });
});
