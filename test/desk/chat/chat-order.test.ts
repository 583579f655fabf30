import { randomUUID } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { callAgentic } from '../../support/server/agents.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { eventually } from '../../support/server/patience.ts';
import { startChats, tenant, until } from './chats.ts';

const random = new Random();
const chats = closeAfterAll(await startChats());
const { server, vendor, token, chat, logsOf } = chats;
const second = await chats.startBeside();
afterEach(() => chats.forget());
test('requests of one session keep their order, sent at once to two processes', async () => {
  const sessionId = randomUUID();
  vendor.behave(({ text }) => ({ kind: 'answer', text: `[${text.length}]`, delay: 40 + random.below(40) }));
  const sent: Promise<Response>[] = [];
  for (let index = 0; index < 12; index += 1) {
    const on = index % 2 === 0 ? server : second;
    sent.push(chat({ agentId: 'desk', message: `m${index}` }, { 'session-id': sessionId }, on));
    // Their order is that of their arrival at the service, not of their sending.
    await until(async () => (await turnsOf(sessionId)) === index + 1, 10);
  }
  for (const response of await Promise.all(sent)) expect(response.status).toBe(200);
  // Each saw exactly what was answered before it: no two ran at once, and none was overtaken.
  const messages = vendor.requests.map(({ body }) => (body.messages ?? []).map(({ content }) => String(content)));
  for (const [index, seen] of messages.entries()) {
    expect(seen).toHaveLength(2 + 2 * index);
    expect(seen.slice(0, -1)).toEqual(index === 0 ? ['Be brief.'] : [...(messages[index - 1] ?? []), seen.at(-2)]);
  }
  expect(messages.map((seen) => seen.at(-1))).toEqual(Array.from({ length: 12 }, (_, index) => `m${index}`));
});

test('the request of a process that died is logged, and later ones of its session continue', async () => {
  const session = { 'session-id': randomUUID() };
  await chat({ agentId: 'desk', message: 'first' }, session);
  await server.database.pool.query(
    `insert into agent_turn (tenant, session_id, position, request_id, log_id, agent_id, state, began_at, expires_at, prompt_tokens)
       values ($1, $2, 99, 'r-dead', $3, 'desk', 'running', now() - interval '1 h', now() - interval '1 s', 7)`,
    [tenant, session['session-id'], randomUUID()],
  );
  await server.context.agents.chats.upkeep(lookAtOnce(server.database.db));
  await second.context.agents.chats.upkeep(lookAtOnce(server.database.db));
  const logs = await logsOf(session['session-id']);
  expect(logs).toHaveLength(2);
  expect(logs.at(-1)).toMatchObject({ requestId: 'r-dead', severity: 'ERROR', promptTokens: 7 });
  const { duration = 0, durationMs = 0 } = logs.at(-1) ?? {};
  expect(duration).toBeCloseTo(3_600, -3);
  expect(duration).toBe(Math.ceil(durationMs / 1_000));
  expect((await chat({ agentId: 'desk', message: 'on' }, session)).status).toBe(200);
});

test('a request that counted as left, and was answered after all, has one log: the true one', async () => {
  const session = { 'session-id': randomUUID() };
  const { promise: looked, resolve: look } = Promise.withResolvers<void>();
  vendor.behave({ kind: 'answer', after: looked, usage: { input: 8, output: 6 } });
  const answer = chat({ agentId: 'desk', message: 'slow' }, session);
  await eventually(() => vendor.requests.length).toBe(1);
  await server.database.pool.query('update agent_turn set expires_at = now() where session_id = $1', [
    session['session-id'],
  ]);
  await second.context.agents.chats.upkeep(lookAtOnce(server.database.db));
  const [left] = await logsOf(session['session-id']);
  expect(left).toMatchObject({ severity: 'ERROR', cause: 'cancelled', promptTokens: 0 });
  look();
  expect((await answer).status).toBe(200);
  const logs = await logsOf(session['session-id']);
  expect(logs).toMatchObject([{ id: left?.id, severity: 'INFO', promptTokens: 8, completionTokens: 6 }]);
  expect(logs[0]).not.toHaveProperty('cause');
  const path = `/logs/sessions/${session['session-id']}`;
  const log = await (await callAgentic(server, { tenant, token, path, method: 'GET' })).json();
  expect(log).toMatchObject({ severity: 'INFO', promptTokens: 8, completionTokens: 6, messages: logs[0]?.messages });
});

test('a chat that is taken up again after its process died has one log, whichever process writes first', async () => {
  const sessionId = randomUUID();
  const logId = randomUUID();
  const credentials = { clientId: 'c', clientName: 'Jane Doe', scopes: [] };
  await chat({ agentId: 'desk', message: 'first' }, { 'session-id': sessionId });
  await server.database.pool.query(
    `insert into agent_turn (tenant, session_id, position, request_id, log_id, agent_id, state, expires_at)
       values ($1, $2, 99, 'r-again', $3, 'desk', 'running', now())`,
    [tenant, sessionId, logId],
  );
  const again = { tenant, agentId: 'desk', message: 'again', sessionId, requestId: 'r-again', logId, credentials };
  await server.context.agents.chats.run(again);
  await second.context.agents.chats.upkeep(lookAtOnce(server.database.db));
  const logs = await logsOf(sessionId);
  expect(logs.filter(({ requestId }) => requestId === 'r-again')).toMatchObject([{ id: logId, severity: 'INFO' }]);
  const { rows } = await server.database.pool.query(
    "select from agent_turn where session_id = $1 and state = 'running'",
    [sessionId],
  );
  expect(rows).toEqual([]);
});

async function turnsOf(sessionId: string): Promise<number> {
  const { rows } = await server.database.pool.query<{ turns: number }>(
    'select turns from agent_session where tenant = $1 and id = $2',
    [tenant, sessionId],
  );
  return rows[0]?.turns ?? 0;
}
