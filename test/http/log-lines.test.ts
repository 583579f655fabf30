import { expect, test } from 'vitest';
import { createLogger } from '../../src/http/logger.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { sendRaw } from '../support/server/raw-request.ts';
import { startTestServer } from '../support/server/server.ts';

const server = closeAfterAll(
  await startTestServer({
    extend: (app) => {
      app.get('/rooms/:tenant', { config: { scopes: ['ai.agent_read'] } }, async (request) => {
        request.log.info('in the handler');
        return 'fine';
      });
    },
  }),
);

function linesOf(requestId: string) {
  return server.logLines.map((line) => JSON.parse(line)).filter((line) => line.requestId === requestId);
}

test.each(['abc-123', 'A.b_c:d', 'x'.repeat(128)])('a sane x-request-id is echoed: %s', async (requestId) => {
  const response = await server.call('/nothing', { headers: { 'x-request-id': requestId } });
  expect(response.headers.get('x-request-id')).toBe(requestId);
  expect(linesOf(requestId)).toHaveLength(1);
});

test.each(['', 'a b', 'x'.repeat(129), '{"a":1}', 'ä', '../etc'])('any other is replaced by a UUID: %j', async (id) => {
  const response = await server.call('/nothing', { headers: { 'x-request-id': id } });
  expect(response.headers.get('x-request-id')).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/,
  );
});

test('every log line of a request bears its id, and one says which client requested what', async () => {
  const client = await server.createClient('acme');
  const token = await server.tokenOf(client);
  const response = await server.call('/rooms/acme?q=hidden', { token, headers: { 'x-request-id': 'mine' } });
  expect(await response.text()).toBe('fine');
  const [handler, request] = linesOf('mine');
  expect(handler.msg).toBe('in the handler');
  expect(request).toMatchObject({
    level: 'info',
    msg: 'request',
    method: 'GET',
    path: '/rooms/acme',
    status: 200,
    tenant: 'acme',
    clientId: client.clientId,
  });
  expect(new Date(request.time).toISOString()).toBe(request.time);
});

test('of a long path a line has the first 1,000 characters', async () => {
  for (const length of [1_000, 1_001]) {
    const path = `/${'p'.repeat(length - 1)}`;
    await server.call(path, { headers: { 'x-request-id': `long-${length}` } });
    expect(linesOf(`long-${length}`)).toMatchObject([{ path: path.slice(0, 1_000) }]);
  }
});

test('no line holds a secret: token, client secret, query, body', async () => {
  const client = await server.createClient('acme');
  const token = await server.tokenOf(client);
  const basic = Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64');
  const form = new URLSearchParams({ grant_type: 'client_credentials', client_secret: client.clientSecret });
  await server.call(`/rooms/acme?access_token=${token}`, { token });
  await server.call(`/rooms/other?token=${token}`, { token });
  await server.call(`/nothing?token=${token}`, { headers: { authorization: `Basic ${basic}` } });
  await server.call('/oauth/token', { method: 'POST', body: form, headers: { authorization: `Basic ${basic}` } });
  await server.call('/oauth/token', { method: 'POST', body: `{"client_secret":"${client.clientSecret}"` });
  await sendRaw(server.baseUrl, `GET /?token=${token} HTTP/9.9\r\nHost: a\r\n\r\n`);
  const log = server.logLines.join('');
  for (const secret of [token, token.split('.')[2] ?? token, client.clientSecret, basic]) {
    expect(log).not.toContain(secret);
  }
});

test('what is logged in spite of that is redacted', () => {
  const lines: string[] = [];
  const logger = createLogger('info', { write: (line) => void lines.push(line) });
  logger.info({ clientSecret: 's3cret', headers: { authorization: 'Bearer s3cret' }, req: { a: 's3cret' } });
  const error = Object.assign(new Error('failed', { cause: new Error('why') }), { code: '23505', detail: 's3cret' });
  logger.error({ err: error });
  expect(lines.join('')).not.toContain('s3cret');
  expect(JSON.parse(lines[1] ?? '').err).toMatchObject({ message: 'failed', code: '23505', cause: { message: 'why' } });
});
