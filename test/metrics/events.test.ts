import { expect, test } from 'vitest';
import { inTransaction } from '../../src/postgres/transaction.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { Browser } from '../support/server/browser.ts';
import { metricsOf, readInstallation, readMetrics } from '../support/server/metric-values.ts';
import { startTestServer } from '../support/server/server.ts';
import { startVendor } from '../support/vendor/vendor-server.ts';

// What really happens, and what the port shows afterwards.

const tenant = 'acme';
const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(
  await startTestServer({
    environment: {
      ANNALS_METRICS_PORT: '0',
      ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
      OPENAI_BASE_URL: `${vendor.baseUrl}/v1`,
    },
  }),
);

const figureOf = async (name: string) => (await readMetrics(metricsOf(server))).get(name) ?? 0;
const valueNow = async (name: string) => (await readInstallation(server)).get(name) ?? 0;

const complete = async (token: string): Promise<number> =>
  (
    await server.call(`/ai-service/${tenant}/completions`, {
      token,
      json: { messages: [{ role: 'user', content: 'Hello' }] },
    })
  ).status;

test('calls of providers count by their outcome, and refusals of the quota', async () => {
  const token = await server.token(tenant);
  // There before the first one, so that an alert sees the increase.
  const values = await readMetrics(metricsOf(server));
  expect(values.get('annals_quota_refusals_total{reason="used_up"}')).toBe(0);
  expect(await complete(token)).toBe(200);
  expect(await figureOf('annals_provider_calls_total{provider="openai",outcome="answered"}')).toBe(1);

  vendor.behave({ kind: 'status', status: 503 });
  expect(await complete(token)).toBe(502);
  expect(await figureOf('annals_provider_calls_total{provider="openai",outcome="unavailable"}')).toBe(1);
  expect(await figureOf('annals_provider_call_duration_seconds_count{provider="openai"}')).toBe(2);

  await server.database.pool.query('update completion_quota set input_used = 3000000 where tenant = $1', [tenant]);
  expect(await complete(token)).toBe(403);
  expect(await figureOf('annals_quota_refusals_total{reason="used_up"}')).toBe(1);
  // The provider was not called.
  expect(await figureOf('annals_provider_call_duration_seconds_count{provider="openai"}')).toBe(2);
});

test('a session of the console counts until it ends', async () => {
  const before = await valueNow('annals_console_sessions');
  const browser = new Browser(server);
  const { clientId, clientSecret } = await server.createClient(tenant);
  expect((await browser.signIn({ clientId, clientSecret })).status).toBe(200);
  expect(await valueNow('annals_console_sessions')).toBe(before + 1);
  expect((await browser.signOut()).status).toBe(204);
  expect(await valueNow('annals_console_sessions')).toBe(before);
});

test('an e-mail waits while there is no mail server', async () => {
  const { db, mail } = server.context;
  await server.createTenant(tenant);
  expect(await valueNow('annals_mails_waiting')).toBe(0);
  const letter = { tenant, to: 'a@shop.example', subject: 'An agent', text: 'is disabled', messageId: '<1@annals>' };
  await inTransaction(db, async (transaction) => await mail.queueMail(transaction, letter));
  await server.database.pool.query('update mail set queued_at = $1', [new Date(Date.now() - 3_601_000)]);
  expect(await valueNow('annals_mails_waiting')).toBe(1);
  expect(await valueNow('annals_mail_oldest_seconds')).toBeGreaterThanOrEqual(3_600);
});
