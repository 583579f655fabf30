import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { modelOperations } from '../../support/server/completions.ts';
import { startTestServer } from '../../support/server/server.ts';
import { type Behaviour, startVendor, vendorSecret } from '../../support/vendor/vendor-server.ts';

const shared = `sk-shared-${randomBytes(12).toString('hex')}`;
const own = `sk-own-${randomBytes(12).toString('hex')}`;
const later = `sk-later-${randomBytes(12).toString('hex')}`;
const prompt = `prompt-${randomBytes(12).toString('hex')}`;

const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(
  await startTestServer({
    environment: { OPENAI_BASE_URL: vendor.baseUrl, ANNALS_SHARED_PROVIDER_TOKEN: shared },
    completionTimes: { provider: { silence: 200, total: 600_000 }, quotaWait: 200 },
  }),
);

// Vendors do quote keys and prompts in their errors.
const echoing = { error: { message: `Incorrect API key provided: ${own} ${shared}, in ${prompt}` } };
const behaviours: Behaviour[] = [
  { kind: 'answer' },
  { kind: 'answer', usage: undefined },
  { kind: 'answer', usage: { input: 1, output: 1_000_000 } },
  { kind: 'hang' },
  { kind: 'cut' },
  { kind: 'garbage' },
  ...[400, 401, 403, 404, 429, 500, 504].map((status): Behaviour => ({ kind: 'status', status, body: echoing })),
];

test('whatever happens, no log line, error, change entry or row shows a provider key or a client secret', async () => {
  const client = await server.createClient('acme', { name: 'Jane Doe' });
  const token = await server.tokenOf(client);
  const bodies: string[] = [];
  const send = async (method: string, path: string, body?: string, headers: Record<string, string> = {}) => {
    const content = body === undefined ? {} : { body, headers: { 'content-type': 'application/json', ...headers } };
    const response = await server.call(path, { method, token, ...content });
    // A stream that fails ends with a cut connection.
    bodies.push(await textSoFar(response));
  };
  const configurations = '/configuration/acme/configurations';
  /** On every path, whole and streamed. */
  const complete = async (headers?: Record<string, string>) => {
    const model = 'gpt-5.4-mini';
    const calls = modelOperations.map((operation) => operation('acme', prompt, model));
    const streams = calls.slice(1).map(([path, body]) => [path, { ...body, stream: true }] as const);
    await Promise.all(
      [...calls, ...streams].map(async ([path, body], index) => {
        const key = headers && { 'idempotency-key': `${headers['idempotency-key']}-${index}` };
        await send('POST', path, JSON.stringify(body), key);
      }),
    );
  };
  const everyBehaviour = async (name: string) => {
    for (const [index, behaviour] of behaviours.entries()) {
      vendor.behave(behaviour);
      await complete();
      await complete({ 'idempotency-key': `${name}-${index}` });
    }
  };

  await everyBehaviour('shared');
  const item = (value: string) => JSON.stringify([{ key: 'providerApiToken', value }]);
  await send('POST', configurations, item(own));
  await send('POST', configurations, item(own));
  await send('POST', configurations, JSON.stringify([{ key: 'other', value: own, secured: true, description: 1 }]));
  await send('POST', configurations, `[{"key":"providerApiToken","value":"${own}`);
  await send('POST', configurations, JSON.stringify([{ key: 'providerApiToken', value: { token: own } }]));
  await everyBehaviour('own');
  await send('PUT', `${configurations}/providerApiToken`, JSON.stringify({ value: later, secured: false }));
  await send('PUT', `${configurations}/providerApiToken`, JSON.stringify({ value: own, version: 1 }));
  await send('GET', configurations);
  await send('GET', `${configurations}/providerApiToken`);
  await send('DELETE', `${configurations}/providerApiToken`);
  await send('GET', '/changelog/acme/changelogs?size=100');
  await send('GET', '/ai-service/acme/completions/usage');
  await server.call('/oauth/token', {
    method: 'POST',
    body: new URLSearchParams({ client_secret: client.clientSecret }),
  });

  expect(bodies.join('\n')).toContain('"entity":"configuration"');
  const found = { bodies: bodies.join('\n'), log: server.logLines.join(''), database: await dump() };
  for (const [place, text] of Object.entries(found)) {
    for (const secret of [shared, own, later, client.clientSecret, vendorSecret, prompt]) {
      expect(text.includes(secret), `${place}: ${secret}`).toBe(false);
      expect(text.includes(Buffer.from(secret).toString('hex')), `${place}: ${secret} in hexadecimal`).toBe(false);
    }
  }
});

async function textSoFar(response: Response): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
  } catch {
    return text;
  }
  return text;
}

/** Every row of every table, as text. */
async function dump(): Promise<string> {
  const { pool } = server.database;
  const { rows } = await pool.query<{ name: string }>(
    "select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables " +
      "where schemaname not in ('pg_catalog', 'information_schema')",
  );
  const tables: string[] = [];
  for (const { name } of rows) {
    const content = await pool.query<{ row: string }>(`select t::text as row from ${name} t`);
    tables.push(name, ...content.rows.map(({ row }) => row));
  }
  expect(tables).toEqual(expect.arrayContaining(['public.configuration', 'public.change_entry']));
  return tables.join('\n');
}
