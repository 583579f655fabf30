import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkLaw } from '../support/oracle/law.ts';
import { arbitraryRequest, type DescribedInterface, type RandomRequest } from '../support/oracle/request-arbitrary.ts';
import { putAgent } from '../support/server/agents.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';
import { startVendor, type Vendor } from '../support/vendor/vendor-server.ts';

// Requests of the attacker. More of them: ANNALS_LAW_REQUESTS=20000 npx vitest run test/isolation
const requests = Number(process.env.ANNALS_LAW_REQUESTS ?? 300);
const requestsOfRun = 12;
const json = { 'content-type': 'application/json' };

let vendor: Vendor;
let server: TestServer;
let described: DescribedInterface;
const tokens = new Map<string, string>();

beforeAll(async () => {
  vendor = await startVendor();
  const environment = {
    OPENAI_BASE_URL: vendor.baseUrl,
    ANTHROPIC_BASE_URL: vendor.baseUrl,
    GOOGLE_BASE_URL: vendor.baseUrl,
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
  };
  server = await startTestServer({ environment });
  described = (await (await server.call('/openapi.json')).json()) as DescribedInterface;
  for (const tenant of ['attacker', 'bystander']) {
    const token = await server.token(tenant);
    tokens.set(tenant, token);
    await putAgent(server, { tenant, token, id: 'desk' });
    const send = (method: string, path: string, body: string) =>
      server.call(`/schema/${tenant}/custom-entities${path}`, { token, method, headers: json, body });
    await send('POST', '', '{"id":"THING","name":{"en":"Thing"}}');
    await send('PUT', '/THING/instances/one', '{"name":"One"}');
  }
});

afterAll(async () => {
  await server.close();
  await vendor.close();
});

/** What the bystander calls, and the status that each call has to have. */
const calls: [method: string, path: string, status: number, body?: string][] = [
  ['GET', '/changelog/bystander/changelogs?q=entity:THING', 200],
  ['GET', '/configuration/bystander/configurations', 200],
  ['GET', '/schema/bystander/custom-entities/THING/instances?sort=name', 200],
  ['PUT', '/schema/bystander/custom-entities/THING/instances/one', 204, '{"name":"Two"}'],
  ['GET', '/ai-service/bystander/agentic/agents', 200],
  ['POST', '/ai-service/bystander/agentic/chat', 200, '{"agentId":"desk","message":"Hello"}'],
  ['POST', '/ai-service/bystander/completions', 200, '{"messages":[{"role":"USER","content":"Hello"}]}'],
  ['POST', '/ai-service/bystander/jobs', 201, '{"type":"EXPORT","q":"","format":"CSV"}'],
  ['GET', '/ai-service/bystander/jobs?pageSize=5', 200],
  ['GET', '/health/live', 200],
];

test('whatever one tenant sends, it gets no 500, and the calls of another tenant are answered as ever', async () => {
  const some = fc.array(arbitraryRequest(described, 'attacker'), {
    minLength: 1,
    maxLength: 2 * requestsOfRun,
    size: 'max',
  });
  const seen = new Map<number, number>();
  await checkLaw(some, { runs: Math.ceil(requests / requestsOfRun) }, async (sent) => {
    const [attacks, others] = await Promise.all([
      Promise.all(sent.map(async (request) => ({ request, status: await statusOf(request) }))),
      Promise.all(calls.map(bystand)),
    ]);
    for (const { status } of attacks) seen.set(status, (seen.get(status) ?? 0) + 1);
    expect(attacks.filter(({ status }) => status === 500)).toEqual([]);
    expect(others).toEqual(calls.map(([method, path, status]) => `${method} ${path} ${status}`));
    // Readiness has a second of the clock, which a busy machine may take; it must not last.
    await eventually(async () => (await server.call('/health/ready')).status).toBe(200);
  });
  // Most requests reach what they ask for, or the law would say little.
  const sum = [...seen.values()].reduce((all, one) => all + one, 0);
  expect(seen.get(403) ?? 0).toBeLessThan(sum / 2);
  console.info(`the attacker's answers: ${JSON.stringify(Object.fromEntries(seen))}`);
}, 600_000);

async function statusOf({ method, path, headers, body }: RandomRequest): Promise<number> {
  const token = tokens.get('attacker') ?? '';
  const response = await server.call(path, { token, method, headers, ...(body === undefined ? {} : { body }) });
  await response.arrayBuffer();
  return response.status;
}

async function bystand([method, path, , body]: (typeof calls)[number]): Promise<string> {
  const token = tokens.get('bystander') ?? '';
  const options = body === undefined ? {} : { headers: json, body };
  const response = await server.call(path, { token, method, ...options });
  await response.arrayBuffer();
  return `${method} ${path} ${response.status}`;
}
