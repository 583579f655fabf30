import { describe, expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { Browser } from '../support/server/browser.ts';
import { sendRaw } from '../support/server/raw-request.ts';
import { startTestServer } from '../support/server/server.ts';

const tenant = 'acme';
const session = '/console/api/session';
const history = `/changelog/${tenant}/changelogs`;
const configurations = `/configuration/${tenant}/configurations`;
const origin = 'https://shop.example';

const server = closeAfterAll(await startTestServer({ environment: { ANNALS_CORS_ORIGINS: `*,${origin}` } }));
const client = await server.createClient(tenant, { name: 'Jane Doe' });
const token = await server.tokenOf(client);
const browser = new Browser(server);
await browser.signIn(client);

/** Sends a request line as it is, with the cookie of the session. */
async function raw(method: string, target: string, headers: Record<string, string> = {}) {
  const { host } = new URL(server.baseUrl);
  const fields = { host, cookie: browser.cookie ?? '', ...headers };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return await sendRaw(server.baseUrl, `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`);
}

describe('an operation below the path is that of the interface', () => {
  test('with its answers, headers and errors', async () => {
    const made = await browser.post(`/console/api/schema/${tenant}/custom-entities`, {
      id: 'SHELF',
      name: { en: 'Shelf' },
    });
    expect([made.status, made.headers.get('location')]).toEqual([201, `/schema/${tenant}/custom-entities/SHELF`]);
    for (const path of [
      history,
      `${history}?page=0`,
      `${history}?q=entity:SHELF&size=1`,
      `${history}?q=status:x`,
      `/changelog/%zz/changelogs`,
      `/changelog/NO/changelogs`,
      `/changelog/other/changelogs`,
      `/schema/${tenant}/custom-entities/NONE`,
      `/schema/${tenant}/custom-entities?pageSize=1`,
      `/nothing/${tenant}`,
    ]) {
      const headers = { 'x-total-count': 'true', 'x-request-id': 'one' };
      const [byToken, bySession] = await Promise.all([
        server.call(path, { token, headers }),
        browser.call(`/console/api${path}`, { headers }),
      ]);
      expect([bySession.status, await bySession.text()], path).toEqual([byToken.status, await byToken.text()]);
      for (const name of [
        'content-type',
        'x-total-count',
        'x-request-id',
        'x-content-type-options',
        'content-security-policy',
      ]) {
        expect(bySession.headers.get(name), `${path} ${name}`).toBe(byToken.headers.get(name));
      }
    }
  });

  test('the actor of a change is the name of the client', async () => {
    expect((await browser.post(`/console/api${configurations}`, [{ key: 'colour', value: 'red' }])).status).toBe(201);
    const found = await browser.call(`/console/api${history}?q=entity:configuration entityId:colour`);
    expect(await found.json()).toMatchObject({ items: [{ actor: 'Jane Doe' }] });
  });

  test("a session has its client's scopes and no more", async () => {
    const reader = new Browser(server);
    await reader.signIn(await server.createClient(tenant, { scope: 'configuration.configuration_view' }));
    expect((await reader.call(`/console/api${configurations}`)).status).toBe(200);
    expect((await reader.post(`/console/api${configurations}`, [])).status).toBe(403);
    expect((await reader.call(`/console/api${history}`)).status).toBe(403);
  });

  test('a log line has the path as it was sent, the tenant and the client', async () => {
    await browser.call(`/console/api${history}`, { headers: { 'x-request-id': 'logged' } });
    const line = server.logLines.map((text) => JSON.parse(text)).find(({ requestId }) => requestId === 'logged');
    expect(line).toMatchObject({ path: `/console/api${history}`, tenant, clientId: client.clientId, status: 200 });
  });
});

describe('the session counts there alone', () => {
  test('a cookie elsewhere is ignored', async () => {
    const { cookie = '' } = browser;
    expect((await server.call(history, { headers: { cookie } })).status).toBe(401);
    expect((await server.call(history, { headers: { cookie: 'x=y' }, token })).status).toBe(200);
  });

  test('a bearer token there is ignored, and so is HTTP Basic', async () => {
    const basic = `Basic ${Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64')}`;
    const stranger = new Browser(server);
    for (const authorization of [`Bearer ${token}`, basic]) {
      expect((await stranger.call(`/console/api${history}`, { headers: { authorization } })).status).toBe(401);
      expect((await stranger.call(session, { headers: { authorization } })).status).toBe(401);
      expect((await browser.call(`/console/api${history}`, { headers: { authorization } })).status).toBe(200);
    }
    const ofOther = await server.token('other');
    const headers = { authorization: `Bearer ${ofOther}` };
    expect((await browser.call('/console/api/changelog/other/changelogs', { headers })).status).toBe(403);
  });

  test('only paths that require a token are reachable', async () => {
    for (const path of [
      '',
      '/',
      '/?x',
      '/docs',
      '/docs/guides',
      '/docs/site/style.css',
      '/openapi.json',
      '/health/live',
      '/health/ready',
      '/oauth/token',
      '/.well-known/jwks.json',
      '/console',
      '/console/',
      '/console/assets/x.js',
      '/console/api',
      '/console/api/session',
      '/%63onsole/api/session',
      `/console/api${history}`,
      '/session/',
      '/session/x',
      '//session',
      `/${history}`,
      `/.${history}`,
      `/x/..${history}`,
      `/%2e%2e/console/api${history}`,
      '/%73ession',
      '/session%2f',
      `/%2fchangelog/${tenant}/changelogs`,
    ]) {
      for (const method of ['GET', 'POST']) {
        const answer = await raw(method, `/console/api${path}`, { origin: server.baseUrl, 'content-length': '0' });
        expect([answer.status, JSON.parse(answer.body).type], `${method} ${path}`).toEqual([404, 'resource_not_found']);
      }
    }
  });

  test.each([
    `/console/%61pi${history}`,
    `/%63onsole/api${history}`,
    `/console%2fapi${history}`,
    `//console/api${history}`,
    `/console//api${history}`,
    `/console/./api${history}`,
    `/console/x/../api${history}`,
    `/CONSOLE/API${history}`,
    `/console/api;x${history}`,
    `/console/api\\..${history}`,
    `http://127.0.0.1/console/api${history}`,
    '/console/%61pi/session',
    '/%63onsole/api/session',
    'http://127.0.0.1/console/api/session',
    'http://evil.example/console/api/session',
  ])('written otherwise the path is another one: %s', async (target) => {
    const answer = await raw('GET', target);
    // The page is public, so its index tells nothing.
    const isPage = answer.status === 200 && answer.headers['content-type']?.startsWith('text/html');
    expect(isPage || [400, 404, 503].includes(answer.status), `${answer.status} ${answer.body}`).toBe(true);
    expect(answer.body).not.toContain(client.clientId);
    expect(answer.body).not.toContain('totalElements');
  });

  test('a method that an operation does not have is 405', async () => {
    expect((await browser.call(session, { method: 'PUT' })).status).toBe(405);
    expect((await browser.call(`/console/api${history}`, { method: 'DELETE' })).status).toBe(405);
    expect((await browser.call(`/console/api${history}`, { method: 'HEAD' })).status).toBe(200);
  });

  test('the document does not describe it', async () => {
    const text = await (await server.call('/openapi.json')).text();
    expect(text).not.toContain('/console');
  });
});

describe('only our own page may call', () => {
  const change = (headers: Record<string, string>, path = `/console/api${configurations}`) =>
    browser.post(path, [{ key: 'planted', value: '1' }], headers);

  test.each([
    ['a foreign origin', { origin }],
    ['a foreign origin that says it is the same', { origin, 'sec-fetch-site': 'same-origin' }],
    ['another port of this machine', { origin: 'http://127.0.0.1:1' }],
    ['the origin null', { origin: 'null' }],
    ['no origin', { origin: '' }],
    ['neither origin nor site', { origin: '', 'sec-fetch-site': '' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['the same site', { 'sec-fetch-site': 'same-site' }],
    ['no page at all', { 'sec-fetch-site': 'none' }],
  ])('a change that comes from %s is 403 and changes nothing', async (_from, headers) => {
    const refused = await change(headers);
    expect([refused.status, await refused.json()]).toMatchObject([403, { type: 'insufficient_permissions' }]);
    expect((await browser.call(`/console/api${configurations}/planted`)).status).toBe(404);
    expect((await browser.call(session, { method: 'DELETE', headers })).status).toBe(403);
    const anonymous = new Browser(server);
    const { clientId, clientSecret } = client;
    expect((await anonymous.post(session, { clientId, clientSecret }, headers)).status).toBe(403);
    expect(anonymous.cookie).toBeUndefined();
  });

  test('a browser that tells no site may change with our origin', async () => {
    expect(
      (await browser.post(`/console/api${configurations}`, [{ key: 'old', value: 1 }], { 'sec-fetch-site': '' }))
        .status,
    ).toBe(201);
  });

  test('another host is 421, whatever the method and what a proxy says', async () => {
    const headers = { host: 'evil.example', origin: 'http://evil.example', 'x-forwarded-host': 'localhost' };
    for (const refused of [
      await browser.call(session, { headers }),
      await browser.call(`/console/api${history}`, { headers }),
      await change(headers),
      await browser.call('/console/api/nothing', { headers }),
    ]) {
      expect([refused.status, await refused.json()]).toMatchObject([421, { type: 'misdirected_request' }]);
    }
  });

  test('bodies are application/json alone', async () => {
    const body = JSON.stringify([{ op: 'add', path: '/x', value: 1 }]);
    const path = `/schema/${tenant}/custom-entities/SHELF/instances/one`;
    await browser.call(`/console/api${path}`, { method: 'PUT', body: '{"name":"One"}' });
    const patch = (type: string) =>
      browser.call(`/console/api${path}`, { method: 'PATCH', body, headers: { 'content-type': type } });
    expect((await patch('application/json-patch+json')).status).toBe(415);
    expect((await patch('text/plain')).status).toBe(415);
    expect((await patch('application/jsonx')).status).toBe(415);
    expect((await patch('application/json; charset=utf-8')).status).toBe(204);
  });

  test('there are no CORS headers, whatever the setting', async () => {
    const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
    const isOpen = await server.call(history, { method: 'OPTIONS', headers: { origin, ...preflight } });
    expect(isOpen.headers.get('access-control-allow-origin')).toBe('*');
    for (const path of [session, `/console/api${history}`, '/console/api', '/console/api/nothing']) {
      for (const from of [origin, server.baseUrl]) {
        for (const method of ['OPTIONS', 'GET', 'POST']) {
          const answer = await browser.call(path, {
            method,
            headers: { origin: from, ...preflight, 'sec-fetch-site': '' },
          });
          const names = [...answer.headers.keys()].filter((name) => name.startsWith('access-control'));
          expect(names, `${method} ${path} from ${from}`).toEqual([]);
          if (method === 'OPTIONS') expect([403, 404, 405]).toContain(answer.status);
        }
      }
    }
  });
});
