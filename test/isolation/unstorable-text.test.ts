import { afterAll, beforeAll, expect, test } from 'vitest';
import { trials } from '../support/oracle/trials.ts';
import {
  type UnstorableDocument,
  type UnstorableRequest,
  unstorableRequests,
} from '../support/oracle/unstorable-requests.ts';
import { putAgent } from '../support/server/agents.ts';
import { Browser } from '../support/server/browser.ts';
import { startTestRecorder, type TestRecorder } from '../support/server/recorder.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';
import { startVendor, type Vendor } from '../support/vendor/vendor-server.ts';

const tenant = 'acme';
const atOnce = 6;
const json = { 'content-type': 'application/json' };

let vendor: Vendor;
let server: TestServer;
let recorder: TestRecorder;
let browser: Browser;
let token: string;

beforeAll(async () => {
  vendor = await startVendor();
  const environment = {
    OPENAI_BASE_URL: vendor.baseUrl,
    ANTHROPIC_BASE_URL: vendor.baseUrl,
    GOOGLE_BASE_URL: vendor.baseUrl,
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
  };
  server = await startTestServer({ environment });
  recorder = await startTestRecorder(server);
  const client = await server.createClient(tenant);
  token = await server.tokenOf(client);
  browser = new Browser(server);
  await browser.signIn(client);
  await putAgent(server, { tenant, token, id: 'x' });
  const send = (method: string, path: string, body: string) =>
    server.call(path, { token, method, headers: json, body });
  await send('POST', `/schema/${tenant}/custom-entities`, '{"id":"THING","name":{"en":"Thing"}}');
  await send('PUT', `/schema/${tenant}/custom-entities/THING/instances/x`, '{"name":"One"}');
  await send('POST', `/configuration/${tenant}/configurations`, '[{"key":"x","value":1}]');
});

afterAll(async () => {
  await recorder.close();
  await server.close();
  await vendor.close();
});

const options = {
  known: { tenant: [tenant], type: ['THING'], id: ['x'], key: ['x'], agentId: ['x'] },
  members: { agentId: 'x', model: 'gpt-5.4-mini' },
  headers: ['authorization', 'cookie', 'x-request-id', 'accept'],
  rounds: trials(1),
};

type Send = (request: UnstorableRequest) => Promise<Response | undefined>;

const byToken =
  (baseUrl: () => string): Send =>
  ({ method, path, headers, body }) =>
    fetch(`${baseUrl()}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body === undefined ? {} : { body }),
    });

async function documentAt(url: string): Promise<UnstorableDocument> {
  return (await (await fetch(url)).json()) as UnstorableDocument;
}

/** The answers that must not be, each with the request that it came to. */
async function faults(requests: readonly UnstorableRequest[], send: Send): Promise<string[]> {
  const found: string[] = [];
  const statuses = new Map<number, number>();
  const queue = requests.values();
  const worker = async () => {
    for (const request of queue) {
      // A malformed request ends its connection, which the next one may still find open.
      const answer = await send(request).catch(() => send(request));
      const text = (await answer?.text()) ?? '';
      const { status = 0 } = answer ?? {};
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      // A valid request may have made an agent that names a model server that does not exist: a chat with it is 502.
      const isOfProvider = status === 502 && text.includes('"type":"provider_error"');
      if (status >= 500 && !isOfProvider)
        found.push(`${status} ${request.place} ${request.path} ${request.body ?? ''} ${text}`.slice(0, 600));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  console.info(JSON.stringify(Object.fromEntries(statuses)));
  return found;
}

test('the service answers no text that cannot be stored with 5xx, whichever part of a request has it', async () => {
  const requests = unstorableRequests(await documentAt(`${server.baseUrl}/openapi.json`), options);
  expect(requests.length).toBeGreaterThan(1_500);
  expect(
    await faults(
      requests,
      byToken(() => server.baseUrl),
    ),
  ).toEqual([]);
});

test('nor does the endpoint for clients of other formats', async () => {
  const requests: ReturnType<typeof unstorableRequests> = [];
  for (const [format, base] of [
    ['openai', '/openai/{tenant}/v1'],
    ['anthropic', '/anthropic/{tenant}'],
  ]) {
    const document = await documentAt(`${server.baseUrl}/${format}/openapi.json`);
    const paths = Object.entries(document.paths).map(([path, of]) => [`${base}${path}`, of]);
    const ofFormat = unstorableRequests({ ...document, paths: Object.fromEntries(paths) }, options);
    expect(ofFormat.length).toBeGreaterThan(50);
    requests.push(...ofFormat);
  }
  expect(
    await faults(
      requests,
      byToken(() => server.baseUrl),
    ),
  ).toEqual([]);
});

test('nor does the recorder', async () => {
  const ofEvents = ['ce-specversion', 'ce-id', 'ce-source', 'ce-type', 'ce-subject', 'x-debezium-offset'];
  const requests = unstorableRequests(await documentAt(`${recorder.baseUrl}/openapi.json`), {
    ...options,
    headers: [...options.headers, ...ofEvents],
    rounds: trials(3),
  });
  expect(requests.length).toBeGreaterThan(100);
  expect(
    await faults(
      requests,
      byToken(() => recorder.baseUrl),
    ),
  ).toEqual([]);
});

test('nor does the console', async () => {
  const document = await documentAt(`${server.baseUrl}/openapi.json`);
  const ofSession = (content: object) => ({ requestBody: { content: { 'application/json': { schema: content } } } });
  const texts = ['clientId', 'clientSecret', 'link', 'tenant'].map((name) => [name, { type: 'string' }]);
  const own = {
    '/session': { get: {}, post: ofSession({ type: 'object', properties: Object.fromEntries(texts) }) },
    '/session/keys/{id}': { delete: { parameters: [{ name: 'id', in: 'path' }] } },
  };
  // Its operations are those of the service, which all have their texts above: here a sample of them.
  const sampled = Object.fromEntries(Object.entries(document.paths).filter((_path, index) => index % 6 === 0));
  const requests = unstorableRequests({ ...document, paths: { ...own, ...sampled } }, options);
  expect(requests.length).toBeGreaterThan(200);
  expect(
    await faults(requests, ({ path, method, headers, body }) =>
      browser.call(`/console/api${path}`, { method, headers, ...(body === undefined ? {} : { body }) }),
    ),
  ).toEqual([]);
});
