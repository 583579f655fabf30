import { describe, expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { sendRaw } from '../support/server/raw-request.ts';
import { startTestServer } from '../support/server/server.ts';

const server = closeAfterAll(
  await startTestServer({
    extend: (app) => {
      app.post('/echo', async (request) => ({ body: request.body ?? null }));
      app.get('/broken', async () => {
        throw new Error('the secret detail');
      });
      app.get('/known', { config: { internalErrorMessage: 'What clients match.' } }, async () => {
        throw new Error('the secret detail');
      });
    },
  }),
);

function violation(message: string) {
  return { status: 400, type: 'validation_violation', message };
}

describe('paths', () => {
  const nothing = { status: 404, type: 'resource_not_found', message: 'There is nothing at this path.' };

  test.each([
    ['GET', '/nothing'],
    ['POST', '/nothing'],
    ['GET', '/health/live/'],
    ['GET', '//health/live'],
  ])('%s %s: an unknown path is 404', async (method, path) => {
    const response = await server.call(path, { method });
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual(nothing);
  });

  test('a path that does not decode is 400, known or not', async () => {
    for (const path of ['/%zz', '/health/live%', '/%C3%28', '/docs/static/%zz', '/%E0%80%AF']) {
      const response = await server.call(path);
      expect(response.status, path).toBe(400);
      expect(await response.json()).toEqual(violation('The path is not valid percent-encoded UTF-8 without NUL.'));
    }
  });

  test('an escaped path is the path it means', async () => {
    expect((await server.call('/%68ealth/live')).status).toBe(200);
  });
});

describe('request line', () => {
  const lineOf = (length: number) => {
    const target = '/health/live?q=';
    return `${target}${'x'.repeat(length - 'GET '.length - target.length - ' HTTP/1.1'.length)}`;
  };
  const tooLong = {
    status: 431,
    type: 'request_header_fields_too_large',
    message: 'The request line must have at most 65536 bytes.',
  };
  const tooManyFields = { ...tooLong, message: 'The header fields must have at most 32768 bytes together.' };
  /** Lines of 40 bytes; the last one is longer or shorter. */
  const fieldsOf = (length: number) => {
    const host = 'Host: localhost\r\n';
    const filler = `X-Filler: ${'a'.repeat(28)}\r\n`;
    const count = Math.floor((length - host.length) / filler.length) - 1;
    const rest = length - host.length - count * filler.length - 'X-Rest: \r\n'.length;
    return `${host}${filler.repeat(count)}X-Rest: ${'a'.repeat(rest)}\r\n`;
  };
  const usual = `Host: localhost\r\nAuthorization: Bearer ${'t'.repeat(2000)}\r\nAccept: */*\r\n`;

  test('64 KiB fit, with usual headers', async () => {
    const answer = await sendRaw(server.baseUrl, `GET ${lineOf(65_536)} HTTP/1.1\r\n${usual}\r\n`);
    expect(answer.status).toBe(200);
  });

  test('one byte more is 431', async () => {
    const answer = await sendRaw(server.baseUrl, `GET ${lineOf(65_537)} HTTP/1.1\r\n${usual}\r\n`);
    expect(answer.status).toBe(431);
    expect(JSON.parse(answer.body)).toEqual(tooLong);
    expect(answer.headers['x-request-id']).toBeDefined();
  });

  test.each([300_000, 1_000_000])('so are %d bytes, which the parser itself refuses', async (length) => {
    const answer = await sendRaw(server.baseUrl, `GET ${lineOf(length)} HTTP/1.1\r\n${usual}\r\n`);
    expect(answer.status).toBe(431);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.headers.connection).toBe('close');
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(JSON.parse(answer.body)).toEqual(tooLong);
  });

  test('header fields of 32 KiB fit', async () => {
    const answer = await sendRaw(server.baseUrl, `GET /health/live HTTP/1.1\r\n${fieldsOf(32_768)}\r\n`);
    expect(answer.status).toBe(200);
  });

  test.each([32_769, 200_000, 400_000])(
    'header fields of %d bytes are 431, which names their limit',
    async (length) => {
      const answer = await sendRaw(server.baseUrl, `GET /health/live HTTP/1.1\r\n${fieldsOf(length)}\r\n`);
      expect(answer.status).toBe(431);
      expect(JSON.parse(answer.body)).toEqual(tooManyFields);
    },
  );
});

describe('malformed HTTP', () => {
  test.each([
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['an unknown method', 'BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a blank in a header name', 'GET / HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n'],
    ['two lengths', 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    [
      'a length and chunks',
      'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    ],
    ['a target that is not ASCII', 'GET /\u00e4 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['bytes of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ])('%s is 400, and the connection is closed', async (_case, text) => {
    const answer = await sendRaw(server.baseUrl, text);
    expect(answer.status).toBe(400);
    expect(answer.headers.connection).toBe('close');
    expect(JSON.parse(answer.body)).toEqual(violation('The request is not valid HTTP.'));
  });

  test.each([
    ['HTTP/1.0 without Host', 'GET /health/live HTTP/1.0\r\n\r\n'],
    ['an unknown expectation', 'GET /health/live HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n'],
    ['an upgrade', 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['an absolute target', 'GET http://elsewhere.example/health/live HTTP/1.1\r\nHost: a\r\n\r\n'],
  ])('%s is answered as usual', async (_case, text) => {
    expect((await sendRaw(server.baseUrl, text)).status).toBe(200);
  });

  test.each(['Host', 'host', 'Authorization', 'AUTHORIZATION'])('two %s headers are 400', async (name) => {
    const [first, second] = name.toLowerCase() === 'host' ? ['a', 'b'] : ['Bearer a', 'Bearer b'];
    const host = name.toLowerCase() === 'host' ? '' : 'Host: a\r\n';
    const lines = `${host}${name}: ${first}\r\n${name}: ${second}\r\n`;
    const answer = await sendRaw(server.baseUrl, `GET /health/live HTTP/1.1\r\n${lines}\r\n`);
    expect(answer.status).toBe(400);
    const canonical = name.toLowerCase() === 'host' ? 'Host' : 'Authorization';
    expect(JSON.parse(answer.body)).toEqual(violation(`The request has more than one ${canonical} header.`));
  });

  test('no Host header is 400', async () => {
    const answer = await sendRaw(server.baseUrl, 'GET /health/live HTTP/1.1\r\n\r\n');
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toEqual(violation('The request has no Host header.'));
  });
});

describe('internal errors', () => {
  test('a 500 says nothing; the log line with its request id does', async () => {
    const response = await server.call('/broken');
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(JSON.parse(text)).toEqual({
      status: 500,
      type: 'internal_service_error',
      message: 'An internal error occurred.',
    });
    const line = server.logLines
      .map((logLine) => JSON.parse(logLine))
      .find(({ requestId, level }) => requestId === response.headers.get('x-request-id') && level === 'error');
    expect(line.err.cause?.message ?? line.err.message).toBe('the secret detail');
  });

  test('an operation may have its own message', async () => {
    const response = await server.call('/known');
    expect(await response.json()).toEqual({
      status: 500,
      type: 'internal_service_error',
      message: 'What clients match.',
    });
  });
});

describe('security headers', () => {
  test('are on every answer', async () => {
    for (const path of ['/health/live', '/nothing', '/%zz', '/broken']) {
      const { headers } = await server.call(path);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('content-security-policy')).toBe("default-src 'none';frame-ancestors 'none'");
    }
  });
});

describe('closing', () => {
  test('what is in flight finishes, idle connections are let go', async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    const { promise: ending, resolve: end } = Promise.withResolvers<void>();
    const closing = await startTestServer({
      database: server.database,
      extend: (app) => {
        app.get('/slow', async () => {
          arrive();
          await ending;
          return { done: true };
        });
      },
    });
    await (await closing.call('/health/live')).text();
    const inFlight = closing.call('/slow');
    await arrived;
    const closed = closing.close();
    setTimeout(end, 250);
    expect(await (await inFlight).json()).toEqual({ done: true });
    await closed;
    await expect(closing.call('/health/live')).rejects.toThrow();
  });
});
