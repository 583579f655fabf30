import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestRecorder } from '../support/server/recorder.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

const path = '/schema/acme/custom-entities';
const preflight = {
  method: 'OPTIONS',
  headers: {
    origin: 'https://shop.example',
    'access-control-request-method': 'PATCH',
    'access-control-request-headers': 'authorization, x-total-count',
  },
};

describe('any origin, by default', () => {
  let server: TestServer;
  let token: string;

  beforeAll(async () => {
    server = await startTestServer();
    token = await server.token('acme');
  });

  afterAll(() => server.close());

  test('all headers of paging are exposed to browsers', async () => {
    const response = await server.call(path, { token, headers: { origin: 'https://shop.example' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    const exposed = response.headers.get('access-control-expose-headers')?.toLowerCase().split(', ');
    expect(exposed).toEqual(expect.arrayContaining(['x-total-count', 'x-next-cursor', 'x-prev-cursor']));
  });

  test('so is what clients of providers read', async () => {
    const response = await server.call('/anthropic/acme/v1/models', { headers: { origin: 'https://shop.example' } });
    expect(response.headers.get('request-id')).not.toBeNull();
    const exposed = response.headers.get('access-control-expose-headers')?.toLowerCase().split(', ');
    expect(exposed).toEqual(expect.arrayContaining(['request-id', 'x-should-retry', 'retry-after-ms']));
  });

  test('so is the name of an export', async () => {
    const response = await server.call(path, { token, headers: { origin: 'https://shop.example' } });
    expect(response.headers.get('access-control-expose-headers')).toContain('Content-Disposition');
  });

  test('a page may read why it was refused', async () => {
    const response = await server.call(path, { headers: { origin: 'https://shop.example' } });
    expect(response.status).toBe(401);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
  });

  test('a preflight needs no token', async () => {
    const response = await server.call(path, preflight);
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-methods')).toContain('PATCH');
    expect(response.headers.get('access-control-allow-headers')).toBe('authorization, x-total-count');
  });

  test('an OPTIONS that is no preflight is a method that no path has', async () => {
    const response = await server.call(path, { method: 'OPTIONS' });
    expect(response.status).toBe(405);
  });
});

test('only the origins of ANNALS_CORS_ORIGINS are let in, to the service and to the recorder', async () => {
  const server = await startTestServer({
    environment: { ANNALS_CORS_ORIGINS: 'https://shop.example,https://b.example' },
  });
  const known = await server.call(path, preflight);
  expect(known.headers.get('access-control-allow-origin')).toBe('https://shop.example');
  expect(known.headers.get('vary')).toContain('Origin');
  const stranger = await server.call(path, {
    ...preflight,
    headers: { ...preflight.headers, origin: 'https://c.example' },
  });
  expect(stranger.headers.get('access-control-allow-origin')).toBeNull();
  const recorder = await startTestRecorder(server);
  const knownThere = await askRecorderFrom(recorder.baseUrl, 'https://shop.example');
  expect(knownThere.status).toBe(204);
  expect(knownThere.headers.get('access-control-allow-origin')).toBe('https://shop.example');
  expect(knownThere.headers.get('access-control-allow-headers')).toContain('content-encoding');
  const strangerThere = await askRecorderFrom(recorder.baseUrl, 'https://c.example');
  expect(strangerThere.headers.get('access-control-allow-origin')).not.toBe('https://c.example');
  const token = await server.token('acme');
  const refused = await recorder.post('acme', 'x', { token, headers: { origin: 'https://shop.example' } });
  expect(refused.headers.get('access-control-allow-origin')).toBe('https://shop.example');
  expect(refused.headers.get('access-control-expose-headers')).toContain('Retry-After');
  await recorder.close();
  await server.close();
});

test('with none, no origin is', async () => {
  const server = await startTestServer({ environment: { ANNALS_CORS_ORIGINS: 'none' } });
  const response = await server.call(path, preflight);
  expect(response.status).toBe(405);
  expect(response.headers.get('access-control-allow-origin')).toBeNull();
  const recorder = await startTestRecorder(server);
  expect((await askRecorderFrom(recorder.baseUrl, 'https://shop.example')).status).toBe(405);
  await recorder.close();
  await server.close();
});

async function askRecorderFrom(baseUrl: string, origin: string): Promise<Response> {
  const headers = {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-encoding,content-type,x-request-id',
  };
  return await fetch(`${baseUrl}/recorder/acme/changes`, { method: 'OPTIONS', headers });
}
