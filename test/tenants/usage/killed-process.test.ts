import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/access/oauth/clients.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { modelOperations } from '../../support/server/completions.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { type ServiceProcesses, startServices } from '../../support/server/service-processes.ts';
import { startVendor, type Vendor } from '../../support/vendor/vendor-server.ts';

const random = new Random();
const tenant = 'acme';
const kills = trials(1);
const usage = { input: 10, output: 5 };

let database: TestDatabase;
let services: ServiceProcesses;
let vendor: Vendor;
let authorization: string;

beforeAll(async () => {
  database = await createTestDatabase();
  await createTenant(database.db, tenant);
  vendor = await startVendor();
  vendor.behave({ kind: 'answer', usage });
  services = await startServices(1, {
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
    ANNALS_BASE_URL: 'http://annals.example',
    OPENAI_BASE_URL: vendor.baseUrl,
  });
  const scope = 'ai.completion_manage configuration.configuration_manage usage.usage_read';
  const client = await createClient(database.db, { tenant, scope });
  authorization = `Basic ${Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64')}`;
});

afterAll(async () => {
  await services.end();
  await vendor.close();
  await database.drop();
});

test(`with the process killed at ${kills} random moments, the tokens of every answer on an own key that went out are counted and recorded`, async () => {
  const items = [{ key: 'providerApiToken', value: 'sk-own' }];
  await call(`/configuration/${tenant}/configurations`, await token(), items);
  let answered = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    const bearer = await token();
    let isOver = false;
    const worker = async () => {
      while (!isOver) {
        const [path, body] = random.pick(modelOperations)(tenant, 'x', 'openai/m');
        const text = await call(path, bearer, body).catch(() => '');
        if (text.includes('Hello there')) answered += 1;
      }
    };
    const before = answered;
    const workers = Array.from({ length: 6 }, worker);
    await expect.poll(() => answered).toBeGreaterThan(before);
    await sleep(random.below(400));
    await (kill + 1 < kills ? services.replace(0) : services.replaceForGood(0));
    isOver = true;
    await Promise.all(workers);
  }
  const sent = vendor.requests.length;
  const [day] = JSON.parse(await call(`/usage/${tenant}?from=${today()}&to=${today()}`, await token()));
  expect(answered).toBeGreaterThan(0);
  expect(day.inputTokens).toBeGreaterThanOrEqual(answered * usage.input);
  expect(day.inputTokens).toBeLessThanOrEqual(sent * usage.input);
  const { rows } = await database.pool.query(
    'select count(*)::integer as calls, sum(input_tokens)::integer as input from call_record where tenant = $1',
    [tenant],
  );
  expect(rows).toEqual([{ calls: day.inputTokens / usage.input, input: day.inputTokens }]);
  expect(day.outputTokens * usage.input).toBe(day.inputTokens * usage.output);
  console.info(`${kills} kills: ${sent} calls, ${answered} answered, ${day.inputTokens / usage.input} counted`);
});

function today(): string {
  return new Date().toISOString().slice(0, 10);
}

async function token(): Promise<string> {
  const response = await fetch(`${await services.next()}/oauth/token`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' },
    body: 'grant_type=client_credentials',
  });
  return ((await response.json()) as { access_token: string }).access_token;
}

async function call(path: string, bearer: string, body?: unknown): Promise<string> {
  const response = await fetch(`${await services.next()}${path}`, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: {
      authorization: `Bearer ${bearer}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
  });
  return await response.text();
}
