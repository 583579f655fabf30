import { randomUUID } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventsOf, putAgent } from '../../support/server/agents.ts';
import { vendorSecret } from '../../support/vendor/vendor-server.ts';
import { startChats, tenant } from './chats.ts';

const chats = closeAfterAll(await startChats());
const { server, vendor, token, chat, logsOf } = chats;
const completionTimes = { provider: { silence: 1_000, total: 600_000 }, quotaWait: 1_000 };
/** The same, with less patience with vendors. */
const hasty = await chats.startBeside({ completionTimes });
afterEach(() => chats.forget());
test.each([
  [{ kind: 'status', status: 401 }, 400, 'validation_violation'],
  [{ kind: 'status', status: 403 }, 400, 'validation_violation'],
  [{ kind: 'status', status: 404 }, 400, 'validation_violation'],
  [{ kind: 'status', status: 429, headers: { 'retry-after': '7' } }, 429, 'rate_limit_exceeded'],
  [{ kind: 'status', status: 400 }, 400, 'validation_violation'],
  [{ kind: 'status', status: 500 }, 502, 'provider_error'],
  [{ kind: 'garbage' }, 502, 'provider_error'],
  [{ kind: 'cut' }, 502, 'provider_error'],
  [{ kind: 'hang' }, 504, 'provider_timeout'],
] as const)('%o of the provider is %i %s, with nothing of its text, and logged', async (behaviour, status, type) => {
  await putAgent(server, { tenant, token, id: 'failing' });
  const session = { 'session-id': randomUUID() };
  vendor.behave(behaviour);
  const on = behaviour.kind === 'hang' ? hasty : server;
  const response = await chat({ agentId: 'failing', message: 'x' }, session, on);
  const text = await response.text();
  expect([response.status, JSON.parse(text).type]).toEqual([status, type]);
  expect(text).not.toContain(vendorSecret);
  if (status === 429) expect(response.headers.get('retry-after')).toBe('7');
  const [log] = await logsOf(session['session-id']);
  expect(log).toMatchObject({ severity: 'ERROR', promptTokens: 0, completionTokens: 0 });
  expect(log?.messages.at(-1)?.message).toContain(JSON.parse(text).message);
  expect(JSON.stringify(log)).not.toContain(vendorSecret);
  // What was not answered is not part of the session.
  vendor.behave({ kind: 'answer' });
  await chat({ agentId: 'desk', message: 'again' }, session);
  expect(vendor.requests.at(-1)?.text).toBe('Be brief.again');
});

test.each([
  [{ kind: 'status', status: 429, headers: { 'retry-after': '7' } }, 7],
  [{ kind: 'status', status: 429, headers: { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' } }, 0],
  [{ kind: 'status', status: 500 }, undefined],
] as const)('the error event of a stream after %j has retryAfter %s', async (behaviour, retryAfter) => {
  vendor.behave(behaviour);
  const response = await chat({ agentId: 'desk', message: 'count' }, {}, server, '/chat-stream');
  const [error] = eventsOf(await response.text());
  expect(error?.event).toBe('error');
  expect(error?.data.retryAfter).toBe(retryAfter);
});

test.each([
  [{ kind: 'status', status: 401 }, 'authentication'],
  [{ kind: 'status', status: 404 }, 'model_not_found'],
  [{ kind: 'status', status: 429 }, 'rate_limited'],
  [{ kind: 'status', status: 429, body: { error: { code: 'insufficient_quota' } } }, 'quota_exhausted'],
  [{ kind: 'status', status: 400, body: { error: { code: 'context_length_exceeded' } } }, 'context_length_exceeded'],
  [{ kind: 'status', status: 400, body: { error: { code: 'content_filter' } } }, 'content_filtered'],
  [{ kind: 'status', status: 500 }, 'bad_answer'],
  [{ kind: 'cut' }, 'bad_answer'],
  [{ kind: 'hang' }, 'timeout'],
] as const)('the log says why a request failed: after %j it is %s', async (behaviour, cause) => {
  await putAgent(server, { tenant, token, id: `cause-${cause}` });
  const session = { 'session-id': randomUUID() };
  vendor.behave(behaviour);
  const on = behaviour.kind === 'hang' ? hasty : server;
  await chat({ agentId: `cause-${cause}`, message: 'x' }, session, on);
  expect(await logsOf(session['session-id'])).toMatchObject([{ severity: 'ERROR', cause }]);
});

test('a failure before the call is sent is logged as such, not as cancelled by the client', async () => {
  const sessionId = randomUUID();
  const credentials = { clientId: 'c', clientName: 'Jane Doe', scopes: [] };
  const request = {
    tenant,
    agentId: 'desk',
    message: 'Hello',
    sessionId,
    requestId: 'r-1',
    logId: randomUUID(),
    credentials,
  };
  const fault = new Error('the database is away');
  const running = server.context.agents.chats.run({ ...request, beforeCall: () => Promise.reject(fault) });
  await expect(running).rejects.toBe(fault);
  const [log] = await logsOf(sessionId);
  expect(log).toMatchObject({ severity: 'ERROR', messages: [{ message: 'An internal error occurred.' }] });
  expect(vendor.requests).toEqual([]);
});
