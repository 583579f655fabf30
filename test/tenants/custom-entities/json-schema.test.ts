import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ThreadPool } from '../../../src/core/fairness/threads.ts';
import { createSchemaChecker } from '../../../src/tenants/custom-entities/schema-checker.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { schemaClient } from '../../support/server/schema-client.ts';
import { startTestServer } from '../../support/server/server.ts';

let types = 0;

const server = closeAfterAll(await startTestServer());
const client = schemaClient(server, 'acme', await server.token('acme'));

/** A type of its own with that schema; answers its path. */
async function typeWith(jsonSchema: unknown): Promise<string> {
  types += 1;
  await client.type(`T${types}`, jsonSchema);
  return `/T${types}/instances`;
}

async function refusalOf(jsonSchema: unknown): Promise<unknown> {
  types += 1;
  const answer = await client.post('', { id: `T${types}`, name: { en: 'x' }, jsonSchema });
  expect(answer.status).toBe(400);
  return answer.body;
}

describe('instances satisfy the schema of their type', () => {
  test('there is a detail for each wrong field, and 400', async () => {
    const path = await typeWith({
      type: 'object',
      properties: {
        price: { type: 'number', minimum: 0 },
        lines: {
          type: 'array',
          items: { type: 'object', required: ['sku'], properties: { sku: { pattern: '^[A-Z]+$' } } },
        },
        code: { type: 'string', pattern: '^\\p{Lu}{2}\\d{3}$' },
        'a.b': { const: 1 },
      },
      required: ['price', 'code'],
      additionalProperties: false,
    });
    const answer = await client.post(path, {
      price: '10',
      lines: [{ sku: 'A' }, {}, { sku: 'a' }],
      'a.b': 2,
      more: true,
    });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({
      type: 'validation_violation',
      message: 'The instance does not satisfy the schema of its type.',
    });
    const { details } = answer.body as { details: { field: string; message: string }[] };
    expect(details.map(({ field }) => field).sort()).toEqual([
      'a\\.b',
      'code',
      'lines.1.sku',
      'lines.2.sku',
      'more',
      'price',
    ]);
    expect(details).toContainEqual({ field: 'price', message: 'must be number' });
    expect((await client.post(path, { price: 10, code: 'ÄB123' })).status).toBe(201);
  });

  test('PUT and PATCH are checked as well', async () => {
    const path = await typeWith({ properties: { n: { type: 'integer' } } });
    await client.put(`${path}/a`, { n: 1 });
    expect((await client.put(`${path}/a`, { n: 1.5 })).status).toBe(400);
    expect(await client.patch(`${path}/a`, [{ op: 'replace', path: '/n', value: 'x' }])).toMatchObject({
      status: 400,
      body: { details: [{ field: 'n' }] },
    });
    expect((await client.get(`${path}/a`)).body).toMatchObject({ n: 1, metadata: { version: 1 } });
  });

  test('id, name and metadata are of the schema only where it speaks of them', async () => {
    const closed = await typeWith({ properties: { n: {} }, additionalProperties: false });
    expect((await client.post(closed, { id: 'a', name: 'A', n: 1 })).status).toBe(201);
    const named = await typeWith({
      properties: { name: { type: 'string' }, id: { minLength: 3 } },
      required: ['name'],
    });
    expect(await client.post(named, { id: 'a', name: { en: 'A' } })).toMatchObject({
      body: {
        details: expect.arrayContaining([
          expect.objectContaining({ field: 'name' }),
          expect.objectContaining({ field: 'id' }),
        ]),
      },
    });
    expect(await client.post(named, {})).toMatchObject({ status: 400, body: { details: [{ field: 'name' }] } });
  });

  test('the schema that holds is the one the type has now', async () => {
    const path = await typeWith({ required: ['old'] });
    const type = path.replace('/instances', '');
    expect((await client.post(path, { new: 1 })).status).toBe(400);
    await client.put(type, { name: { en: 'x' }, jsonSchema: { required: ['new'] } });
    expect((await client.post(path, { new: 1 })).status).toBe(201);
    await client.put(type, { name: { en: 'x' } });
    expect((await client.post(path, {})).status).toBe(201);
  });

  test('JSON Schema 2020-12: $defs, prefixItems, unevaluatedProperties, recursion, boolean schemas', async () => {
    const path = await typeWith({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://example.com/tree',
      $defs: {
        node: { properties: { next: { $ref: '#/$defs/node' }, v: { type: 'integer' } }, unevaluatedProperties: false },
      },
      properties: {
        tree: { $ref: '#/$defs/node' },
        pair: { prefixItems: [{ type: 'string' }, { type: 'number' }], items: false },
      },
    });
    expect((await client.post(path, { tree: { v: 1, next: { next: { v: 2 } } }, pair: ['a', 1] })).status).toBe(201);
    expect(await client.post(path, { tree: { next: { next: { v: 'x', w: 1 } } }, pair: [1, 'a', 3] })).toMatchObject({
      status: 400,
    });
    const nothing = await typeWith(false);
    expect((await client.post(nothing, {})).status).toBe(400);
    expect((await client.post(await typeWith(true), {})).status).toBe(201);
  });

  test('a schema that refers to the whole of itself, by # or by its $id', async () => {
    const node = { properties: { v: { type: 'integer' }, next: { $ref: '#' } } };
    const id = 'https://example.com/node';
    for (const schema of [node, { $id: id, properties: { v: { type: 'integer' }, next: { $ref: id } } }]) {
      const path = await typeWith(schema);
      expect((await client.post(path, { v: 1, next: { v: 2, next: { v: 3 } } })).status).toBe(201);
      expect(await client.post(path, { v: 1, next: { v: 2, next: { v: 'x' } } })).toMatchObject({
        status: 400,
        body: { details: [{ field: 'next.next.v', message: 'must be integer' }] },
      });
    }
    const endless = await typeWith({ $ref: '#' });
    expect(await client.post(endless, {})).toMatchObject({ status: 400, body: { type: 'validation_violation' } });
  });

  test('multipleOf means decimals, not doubles', async () => {
    const path = await typeWith({ properties: { cents: { multipleOf: 0.01 }, dozens: { multipleOf: 12 } } });
    for (const cents of ['0.07', '19.99', '4.35', '1.10', '-8.20', '0', '1e22', '123456789.01', '1e300']) {
      expect((await client.post(path, `{"cents":${cents}}`)).status, cents).toBe(201);
    }
    for (const cents of ['1.005', '-0.001', '1e-300', '1e400']) {
      expect(await client.post(path, `{"cents":${cents}}`), cents).toMatchObject({
        status: 400,
        body: { details: [{ field: 'cents', message: 'must be multiple of 0.01' }] },
      });
    }
    expect((await client.post(path, { dozens: 36 })).status).toBe(201);
    expect((await client.post(path, { dozens: 37 })).status).toBe(400);
    const type = '{"id":"HUGE","name":{"en":"Huge"},"jsonSchema":{"properties":{"v":{"multipleOf":1e400}}}}';
    expect((await client.post('', type)).status).toBe(201);
    expect((await client.post('/HUGE/instances', { v: 0 })).status).toBe(201);
    expect((await client.post('/HUGE/instances', { v: 3 })).status).toBe(400);
  });

  test('what every object of JavaScript has is not in a document', async () => {
    const path = await typeWith({ required: ['toString', 'constructor'] });
    expect((await client.post(path, {})).status).toBe(400);
    expect((await client.post(path, '{"toString":1,"constructor":2}')).status).toBe(201);
  });

  test('uniqueItems compares whole values, also of many items', async () => {
    const path = await typeWith({ properties: { list: { uniqueItems: true } } });
    expect(
      await client.post(path, {
        list: [
          { a: 1, b: [2] },
          { b: [2], a: 1 },
        ],
      }),
    ).toMatchObject({ status: 400 });
    expect((await client.post(path, { list: [1, '1', true, 'true', null, {}, []] })).status).toBe(201);
    const many = Array.from({ length: 99_000 }, (_, index) => index);
    expect((await client.post(path, { list: many })).status).toBe(201);
  });
});

describe('schemas that are refused', () => {
  test.each([
    ['a keyword with a value it cannot have', { type: 'nothing' }, 'jsonSchema.type'],
    ['a remote $ref', { $ref: 'https://example.com/x.json' }, 'jsonSchema'],
    ['a $ref to the meta-schema', { $ref: 'https://json-schema.org/draft/2020-12/schema' }, 'jsonSchema'],
    ['a $ref to nothing', { $ref: '#/$defs/x' }, 'jsonSchema'],
    ['another dialect', { $schema: 'http://json-schema.org/draft-07/schema#' }, 'jsonSchema.$schema'],
    ['a pattern with a look-ahead', { pattern: '(?=a)b' }, 'jsonSchema'],
    ['a pattern with a back-reference', { patternProperties: { '(a)\\1': {} } }, 'jsonSchema'],
    ['$async', { $async: true }, 'jsonSchema'],
    ['an array', [], 'jsonSchema'],
  ])('%s', async (_case, schema, field) => {
    expect(await refusalOf(schema)).toMatchObject({ type: 'validation_violation', details: [{ field }] });
  });

  test('more than 64 KiB', async () => {
    const filled = (bytes: number) => ({ description: 'x'.repeat(bytes - '{"description":""}'.length) });
    await typeWith(filled(64 * 1024));
    expect(await refusalOf(filled(64 * 1024 + 1))).toMatchObject({ details: [{ field: 'jsonSchema' }] });
  });

  test('more than 32 levels', async () => {
    const nested = (levels: number) => JSON.parse(`${'{"not":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`);
    await typeWith(nested(32));
    expect(await refusalOf(nested(33))).toMatchObject({ details: [{ field: 'jsonSchema' }] });
  });
});

describe('hostile schemas', () => {
  test.each([{ replace: 1 }, 7, null, []])('a $schema that is no text: %j', async ($schema) => {
    types += 1;
    const made = await client.post('', { id: `T${types}`, name: { en: 'T' }, jsonSchema: { $schema } });
    expect(made).toMatchObject({ status: 400, body: { type: 'validation_violation' } });
  });

  test('no text in a schema becomes code', async () => {
    const hostile = `"+process.exit(1)+"\`\${process.exit(1)}\`');process.exit(1)//\\u2028`;
    const path = await typeWith({
      $id: `https://x/${encodeURIComponent(hostile)}`,
      $comment: hostile,
      title: hostile,
      properties: { [hostile]: { const: hostile, enum: [hostile], pattern: `^[${'a'}]` } },
      patternProperties: { '^x"\\+y': { const: hostile } },
      required: [hostile],
      dependentRequired: { [hostile]: [hostile] },
      $defs: { [hostile]: {} },
    });
    expect(await client.post(path, { [hostile]: 'x' })).toMatchObject({ status: 400 });
    expect((await client.post(path, {})).status).toBe(400);
  });

  test('a schema whose work doubles with each level of a document is stopped, and others are served until then', async () => {
    const checker = createSchemaChecker(new ThreadPool(), 300);
    const both = { properties: { x: { $ref: '#/$defs/a' } }, required: ['y'] };
    const schema = JSON.stringify({ $defs: { a: { anyOf: [both, both, both] } }, $ref: '#/$defs/a' });
    const document = `${'{"x":'.repeat(60)}{}${'}'.repeat(60)}`;
    await checker.checkSchema(schema);
    let over = false;
    const checked = expect(checker.checkDocument(schema, document)).rejects.toMatchObject({
      status: 400,
      details: [{ message: 'takes too long to check against the schema of its type' }],
    });
    const ended = checked.finally(() => {
      over = true;
    });
    let turns = 0;
    while (!over) {
      await setImmediate();
      turns += 1;
    }
    await ended;
    expect(turns).toBeGreaterThan(10);
    // The next one finds a new thread.
    await checker.checkDocument('{"type":"object"}', '{}');
  });

  test('a pattern that would take a backtracking engine for ever', async () => {
    const path = await typeWith({ properties: { s: { pattern: '^(a+)+$' } } });
    expect((await client.post(path, { s: `${'a'.repeat(50_000)}!` })).status).toBe(400);
    expect((await client.post(path, { s: 'a'.repeat(50_000) })).status).toBe(201);
  });

  test('a schema that refers to itself and to nothing else', async () => {
    types += 1;
    const made = await client.post('', { id: `T${types}`, name: { en: 'x' }, jsonSchema: { $ref: '#' } });
    if (made.status === 201) expect((await client.post(`/T${types}/instances`, {})).status).toBe(400);
    else expect(made.status).toBe(400);
  });
});
