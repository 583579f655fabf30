import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { Browser } from '../support/server/browser.ts';
import { startTestRecorder } from '../support/server/recorder.ts';
import { startTestServer } from '../support/server/server.ts';

const server = closeAfterAll(await startTestServer());
const recorder = closeAfterAll(await startTestRecorder(server));
const token = await server.token('acme');
const all = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

interface Described {
  paths: Record<string, Record<string, unknown>>;
}

async function answer(baseUrl: string, path: string, method: string) {
  const response = await fetch(`${baseUrl}${path}`, { method, headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  return { status: response.status, allow: response.headers.get('allow'), text };
}

test('every path that is described answers a method that it lacks with 405 and Allow, on the service and the recorder', async () => {
  let count = 0;
  for (const { baseUrl } of [server, recorder]) {
    const { paths } = (await (await fetch(`${baseUrl}/openapi.json`)).json()) as Described;
    for (const template of Object.keys(paths)) {
      const path = template.replaceAll('{tenant}', 'acme').replaceAll(/\{[^}]+\}/g, 'a%20b');
      // `/views/search` is also an id of `/views/{id}`.
      const matching = Object.keys(paths).filter((other) => {
        const pattern = other
          .replace('{tenant}', 'acme')
          .replaceAll(/\{path\}/g, '.+')
          .replaceAll(/\{[^}]+\}/g, '[^/]+');
        return new RegExp(`^${pattern}$`).test(path);
      });
      const methods = matching.flatMap((other) => Object.keys(paths[other] ?? {})).map((name) => name.toUpperCase());
      const allowed = new Set(
        methods.flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : [name])).filter((name) => all.includes(name)),
      );
      for (const method of all.filter((name) => !allowed.has(name))) {
        count += 1;
        const { status, allow, text } = await answer(baseUrl, path, method);
        expect([template, method, status, allow]).toEqual([template, method, 405, [...allowed].sort().join(', ')]);
        if (method !== 'HEAD') expect(JSON.parse(text)).toMatchObject({ status: 405, type: 'method_not_allowed' });
      }
    }
  }
  expect(count).toBeGreaterThan(200);
});

test.each([
  ['POST', '/console', 'GET, HEAD'],
  ['DELETE', '/', 'GET, HEAD'],
  ['PUT', '/docs', 'GET, HEAD'],
  ['POST', '/viewer.js', 'GET, HEAD'],
  ['PROPFIND', '/health/live', 'GET, HEAD'],
  ['GET', '/mcp/acme', 'POST'],
  ['PATCH', '/mcp/acme', 'POST'],
  ['GET', '/openai/acme/v1/chat/completions', 'POST'],
  ['DELETE', '/openai/acme/v1/models', 'GET, HEAD'],
  ['POST', '/openai/acme/v1/models/a/b', 'GET, HEAD'],
  ['GET', '/anthropic/acme/v1/messages', 'POST'],
  ['DELETE', '/anthropic/acme/v1/models', 'GET, HEAD'],
  ['GET', '/anthropic/acme', 'HEAD'],
])('so does %s %s, which the document leaves out', async (method, path, allow) => {
  expect(await answer(server.baseUrl, path, method)).toMatchObject({ status: 405, allow });
});

test.each([
  ['GET', '/nothing'],
  ['POST', '/changelog/acme'],
  ['POST', '/changelog/acme/changelogs/'],
  ['OPTIONS', '/nothing'],
  ['POST', '/recorder/acme/changes'],
  ['GET', '/openai/acme/v1/other'],
  ['GET', '/anthropic/acme/v1/other'],
])('%s %s is 404, without Allow: the path has no method at all', async (method, path) => {
  expect(await answer(server.baseUrl, path, method)).toMatchObject({ status: 404, allow: null });
});

test('below the path of the console the session and the operations have their methods', async () => {
  const browser = new Browser(server);
  await browser.signIn(await server.createClient('acme'));
  for (const [method, path, status, allow] of [
    ['PUT', '/console/api/session', 405, 'DELETE, GET, HEAD, POST'],
    ['DELETE', '/console/api/changelog/acme/changelogs', 405, 'GET, HEAD'],
    ['DELETE', '/console/api/viewer/acme/changes', 404, null],
    ['DELETE', '/console/api/health/live', 404, null],
  ] as const) {
    const response = await browser.call(path, { method });
    expect([path, response.status, response.headers.get('allow')]).toEqual([path, status, allow]);
  }
});
