import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const tenant = 'acme';
const calls = 30;

const vendor = closeAfterAll(await startVendor());
vendor.behave({ kind: 'answer', usage: { input: 10, output: 5 } });
const server = closeAfterAll(await startTestServer({ environment: { OPENAI_BASE_URL: vendor.baseUrl } }));
const token = await server.token(tenant);
await send(`/configuration/${tenant}/configurations`, [{ key: 'providerApiToken', value: 'sk-own' }]);

async function send(path: string, body: unknown): Promise<number> {
  return (await server.call(path, { token, json: body })).status;
}

const complete = () => send(`/ai-service/${tenant}/completions`, { messages: [{ role: 'USER', content: 'x' }] });

async function used(): Promise<unknown> {
  const days = (await (await server.call(`/usage/${tenant}`, { token })).json()) as Record<string, number>[];
  return [days.at(-1)?.inputTokens, days.at(-1)?.outputTokens];
}

test('a client that has the answer of a call with an own key sees its tokens', async () => {
  for (let call = 1; call <= 3; call += 1) {
    expect(await complete()).toBe(200);
    expect(await used()).toEqual([call * 10, call * 5]);
  }
});

test('while calls on an own key cannot be stored, calls are answered, the log has no line for each, and all are stored later', async () => {
  const { pool } = server.database;
  const before = (await used()) as number[];
  const lines = server.logLines.length;
  await pool.query('alter table call_record rename to call_record_away');
  for (let call = 0; call < calls; call += 1) expect(await complete()).toBe(200);
  await pool.query('alter table call_record_away rename to call_record');
  const warnings = server.logLines.slice(lines).filter((line) => line.includes('a settlement of calls failed'));
  expect(warnings.length).toBeGreaterThan(0);
  expect(warnings.length).toBeLessThan(calls / 2);
  await eventually(used).toEqual([(before[0] ?? 0) + calls * 10, (before[1] ?? 0) + calls * 5]);
});
