import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { Type } from 'typebox';
import { describe, expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestServer } from '../support/server/server.ts';

const mebibyte = 1024 * 1024;

const server = closeAfterAll(
  await startTestServer({
    extend: (app) => {
      app.post('/echo', async (request) => ({ body: request.body ?? null }));
      app.delete('/echo', async (request) => ({ body: request.body ?? null }));
      const body = Type.Array(Type.Object({ n: Type.Integer() }, { additionalProperties: false }));
      app.post('/strict', { schema: { body } }, async () => 'fine');
    },
  }),
);

async function post(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}, path = '/echo') {
  const response = await server.call(path, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  });
  return { status: response.status, body: await response.json() };
}

function violation(message: string) {
  return { status: 400, body: { status: 400, type: 'validation_violation', message } };
}

describe('bodies', () => {
  test('1 MiB fits, one byte more is 413', async () => {
    const fits = await post(`"${'x'.repeat(mebibyte - 2)}"`);
    expect(fits.status).toBe(200);
    const tooLarge = await post(`"${'x'.repeat(mebibyte - 1)}"`);
    expect(tooLarge).toEqual({
      status: 413,
      body: { status: 413, type: 'payload_too_large', message: 'The request body must have at most 1048576 bytes.' },
    });
  });

  test('a body in chunks is measured as well', async () => {
    const { port } = new URL(server.baseUrl);
    const sending = httpRequest({
      port,
      path: '/echo',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    sending.on('error', () => {});
    sending.write('x'.repeat(mebibyte));
    sending.write('x');
    const [response] = await once(sending, 'response');
    expect(response.statusCode).toBe(413);
    sending.destroy();
  });

  test.each([
    'text/plain',
    'application/xml',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'garbage',
    '',
  ])('the content type %j is 415', async (type) => {
    const { port } = new URL(server.baseUrl);
    const sending = httpRequest({ port, path: '/echo', method: 'POST', headers: type ? { 'content-type': type } : {} });
    sending.end('{}');
    const [response] = await once(sending, 'response');
    expect(response.statusCode).toBe(415);
    expect(JSON.parse(Buffer.concat(await response.toArray()).toString())).toEqual({
      status: 415,
      type: 'unsupported_media_type',
      message: 'The content type is not one that this operation accepts.',
    });
  });

  test('100,000 values fit, one more is 413', async () => {
    const fits = JSON.stringify(Array(99_999).fill(1));
    expect((await post(fits)).body).toEqual({ body: JSON.parse(fits) });
    expect(await post(JSON.stringify(Array(100_000).fill(1)))).toEqual({
      status: 413,
      body: {
        status: 413,
        type: 'payload_too_large',
        message: 'The request body must have at most 100000 JSON values.',
      },
    });
  });

  test('faults of a body of many values are reported as those of any other', async () => {
    const rows = Array<unknown>(50_000 / 2).fill({ n: 1 });
    const body = JSON.stringify(rows);
    const right = await server.call('/strict', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    });
    expect(await right.text()).toBe('fine');
    const wrong = await post(JSON.stringify([...rows.slice(20), ...Array(20).fill({ n: '1' })]), {}, '/strict');
    expect(wrong).toMatchObject(violation('The request body is not valid.'));
    expect(wrong.body).toHaveProperty(
      'details',
      Array.from({ length: 10 }, (_, index) => ({ field: `${24_980 + index}.n`, message: 'must be integer' })),
    );
    expect(await post(JSON.stringify(rows).slice(0, -1))).toEqual(violation('The request body is not valid JSON.'));
  });

  test.each([
    ['application/json; charset=iso-8859-1', 415],
    ['application/json;charset="UTF-16"', 415],
    ['application/json; charset="utf-8"', 200],
    ['application/json; charset=utf8', 200],
  ])('the charset of %s is %i', async (type, status) => {
    const answer = await post('[1]', { 'content-type': type });
    expect(answer.status).toBe(status);
    if (status === 415) {
      const message = 'The charset of the request body must be UTF-8.';
      expect(answer.body).toEqual({ status, type: 'unsupported_media_type', message });
    }
  });

  test('JSON with a charset is JSON', async () => {
    expect(await post('[1]', { 'content-type': 'application/json; charset=UTF-8' })).toEqual({
      status: 200,
      body: { body: [1] },
    });
  });

  test('a compressed body is 415', async () => {
    expect((await post('[1]', { 'content-encoding': 'gzip' })).status).toBe(415);
  });

  test.each(['{', '{"a":}', '[1,]', "{'a':1}", '{"secret":"s3cret"', 'NaN', '\u{feff}\u{feff}1'])(
    'malformed JSON %j is 400, and not repeated',
    async (text) => {
      expect(await post(text)).toEqual(violation('The request body is not valid JSON.'));
    },
  );

  test('bytes that are no UTF-8 are 400', async () => {
    expect(await post(Uint8Array.of(0x22, 0xff, 0x22))).toEqual(violation('The request body is not UTF-8.'));
  });

  test('brackets in a string are no levels, also after an escaped quote', async () => {
    const text = `"[${'{'.repeat(200)}\\`;
    expect(await post(JSON.stringify([text]))).toEqual({ status: 200, body: { body: [text] } });
  });

  test('100 levels fit, 101 are 400', async () => {
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ]) {
      const nested = (depth: number) => `${open?.repeat(depth - 1)}[]${close?.repeat(depth - 1)}`;
      expect((await post(nested(100))).status).toBe(200);
      expect(await post(nested(101))).toEqual(violation('The request body is nested deeper than 100 levels.'));
    }
  });

  test('__proto__ is a key like others and changes no prototype', async () => {
    const text = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}';
    const response = await server.call('/echo', {
      method: 'POST',
      body: text,
      headers: { 'content-type': 'application/json' },
    });
    expect(await response.text()).toBe(`{"body":${text}}`);
    expect('polluted' in {}).toBe(false);
  });

  test('faults of a body are reported by field', async () => {
    expect(await post('[{"n":1},{"n":"2"},{}]', {}, '/strict')).toEqual({
      status: 400,
      body: {
        status: 400,
        type: 'validation_violation',
        message: 'The request body is not valid.',
        details: [
          { field: '1.n', message: 'must be integer' },
          { field: '2.n', message: 'is required' },
        ],
      },
    });
    const none = await server.call('/strict', { method: 'POST' });
    expect(none.status).toBe(400);
  });

  test('an operation without a body takes none', async () => {
    expect((await server.call('/echo', { method: 'DELETE' })).status).toBe(200);
    const empty = await server.call('/echo', { method: 'DELETE', headers: { 'content-type': 'application/json' } });
    expect(empty.status).toBe(200);
  });
});
