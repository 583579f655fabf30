import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { arbitraryChanges, type SentChanges } from '../support/oracle/changes-arbitrary.ts';
import { checkLaw } from '../support/oracle/law.ts';
import { seed } from '../support/oracle/random.ts';
import {
  arbitraryRequest,
  type DescribedInterface,
  type RandomRequest,
  requestsByOperation,
} from '../support/oracle/request-arbitrary.ts';
import { putAgent } from '../support/server/agents.ts';
import { Browser } from '../support/server/browser.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestRecorder, type TestRecorder } from '../support/server/recorder.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';
import { startVendor, type Vendor } from '../support/vendor/vendor-server.ts';

/** Requests of the attacker. */
const requests = 60;
const requestsOfRun = 12;
const json = { 'content-type': 'application/json' };

let vendor: Vendor;
let server: TestServer;
let recorder: TestRecorder;
let described: DescribedInterface;
/** Signed in to the console. */
const browsers = new Map<string, Browser>();
const tokens = new Map<string, string>();
/** The attacker's. */
let viewerToken: string;

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
  described = (await (await server.call('/openapi.json')).json()) as DescribedInterface;
  for (const tenant of ['attacker', 'bystander']) {
    const client = await server.createClient(tenant);
    const token = await server.tokenOf(client);
    tokens.set(tenant, token);
    const browser = new Browser(server);
    await browser.signIn(client);
    browsers.set(tenant, browser);
    await putAgent(server, { tenant, token, id: 'desk' });
    const send = (method: string, path: string, body: string) =>
      server.call(`/schema/${tenant}/custom-entities${path}`, { token, method, headers: json, body });
    await send('POST', '', '{"id":"THING","name":{"en":"Thing"}}');
    await send('PUT', '/THING/instances/one', '{"name":"One"}');
  }
  viewerToken = await server.viewerToken('attacker', { token: tokens.get('attacker') });
  // The recorder starts its threads, one a tenant, with the first requests. On a busy machine that may take them too
  // long.
  const record = async (tenant: string) =>
    await drained(await recorder.post(tenant, change, { token: tokens.get(tenant) ?? '', type: 'application/json' }));
  for (let attempt = 1; ; attempt += 1) {
    const statuses = await Promise.all(['attacker', 'bystander'].map(record));
    if (statuses.every((status) => status === 200)) break;
    if (attempt === maxAttempts) throw new Error(`the recorder answers ${statuses}`);
  }
}, 180_000);

/** A thread has 10 seconds to start. */
const maxAttempts = 10;

const change =
  '{"id":"c","op":"insert","entity":"order","entityId":"o","at":"2026-11-15T14:05:12.250Z","after":{"a":1}}';

afterAll(async () => {
  await recorder.close();
  await server.close();
  await vendor.close();
});

/** What the bystander calls, and the status that each call has to have. */
const calls: [method: string, path: string, status: number, body?: string][] = [
  ['GET', '/changelog/bystander/changelogs?q=entity:THING', 200],
  ['GET', '/changelog/bystander/histogram?interval=day', 200],
  ['GET', '/configuration/bystander/configurations', 200],
  ['GET', '/schema/bystander/custom-entities/THING/instances?sort=name', 200],
  ['PUT', '/schema/bystander/custom-entities/THING/instances/one', 204, '{"name":"Two"}'],
  ['GET', '/ai-service/bystander/agentic/agents', 200],
  ['POST', '/ai-service/bystander/agentic/chat', 200, '{"agentId":"desk","message":"Hello"}'],
  ['POST', '/ai-service/bystander/completions', 200, '{"messages":[{"role":"USER","content":"Hello"}]}'],
  ['POST', '/ai-service/bystander/jobs', 201, '{"type":"EXPORT","q":"","format":"CSV"}'],
  ['GET', '/ai-service/bystander/jobs?pageSize=5', 200],
  ['GET', '/console/api/session', 200],
  ['GET', '/console/api/changelog/bystander/changelogs', 200],
  ['POST', '/recorder/bystander/changes', 200, change],
  ['GET', '/health/live', 200],
];

/** What an attacker sends: by token, as the page of the console, or to the recorder. */
type Attack = { by: 'token' | 'session'; request: RandomRequest } | { by: 'recorder'; request: SentChanges };

const byToken = (request: RandomRequest): Attack => ({ by: 'token', request });
const bySession = (request: RandomRequest): Attack => ({ by: 'session', request });
const byRecorder = (request: SentChanges): Attack => ({ by: 'recorder', request });

test('every operation gets requests, and whatever they are none is answered with 500', async () => {
  for (const arbitrary of requestsByOperation(described, 'attacker')) {
    const [one, other] = fc.sample(arbitrary, { numRuns: 2, seed });
    if (one === undefined || other === undefined) throw new Error('fast-check drew nothing');
    await expectHonest([byToken(one), bySession(other)]);
  }
});

test('whatever one tenant sends, it gets no 500, and the calls of another tenant are answered as ever', async () => {
  const request = arbitraryRequest(described, 'attacker');
  const attack = fc.oneof(
    { weight: 8, arbitrary: request.map(byToken) },
    { weight: 2, arbitrary: request.map(bySession) },
    { weight: 2, arbitrary: arbitraryChanges.map(byRecorder) },
  );
  const attacks = fc.array(attack, { minLength: 1, maxLength: 2 * requestsOfRun, size: 'max' });
  await checkLaw(attacks, { runs: Math.ceil(requests / requestsOfRun) }, async (sent) => {
    const [, others] = await Promise.all([expectHonest(sent), Promise.all(calls.map(bystand))]);
    expect(others).toEqual(calls.map(([method, path, status]) => `${method} ${path} ${status}`));
    // Readiness has a second of the clock, which a busy machine may take; it must not last.
    await eventually(async () => (await server.call('/health/ready')).status).toBe(200);
  });
  // Most requests reach what they ask for, or the law would say little.
  const sum = [...seen.values()].reduce((all, one) => all + one, 0);
  expect(seen.get(403) ?? 0).toBeLessThan(sum / 2);
  console.info(`the attacker's answers: ${JSON.stringify(Object.fromEntries(seen))}`);
});

/** How many of the attacker's answers had which status. */
const seen = new Map<number, number>();

async function expectHonest(sent: readonly Attack[]): Promise<void> {
  const attacks = await Promise.all(sent.map(async (attack) => ({ ...attack, status: await statusOf(attack) })));
  for (const { status } of attacks) seen.set(status, (seen.get(status) ?? 0) + 1);
  expect(attacks.filter(({ status }) => status === 500)).toEqual([]);
}

async function statusOf({ by, request }: Attack): Promise<number> {
  const token = tokens.get('attacker') ?? '';
  if (by === 'recorder') return await drained(await recorder.post('attacker', request.body, { token, ...request }));
  const { method, path, headers, body } = request;
  const credential = path.startsWith('/viewer/') ? viewerToken : token;
  const init = { method, headers, ...(body === undefined ? {} : { body }) };
  const answer =
    by === 'token'
      ? await server.call(path, { token: credential, ...init })
      : await browsers.get('attacker')?.call(`/console/api${path}`, init);
  if (answer === undefined) throw new Error('nobody is signed in');
  return await drained(answer);
}

async function bystand([method, path, , body]: (typeof calls)[number]): Promise<string> {
  const token = tokens.get('bystander') ?? '';
  if (path.startsWith('/recorder')) {
    const answer = await recorder.post('bystander', body ?? '', { token, type: 'application/json' });
    return `${method} ${path} ${await drained(answer)}`;
  }
  if (path.startsWith('/console')) {
    const answer = await browsers.get('bystander')?.call(path, { method });
    return `${method} ${path} ${answer === undefined ? 'nobody' : await drained(answer)}`;
  }
  const options = body === undefined ? {} : { headers: json, body };
  return `${method} ${path} ${await drained(await server.call(path, { token, method, ...options }))}`;
}

/** The status, once the answer is read to its end. */
async function drained(answer: Response): Promise<number> {
  await answer.arrayBuffer();
  return answer.status;
}
