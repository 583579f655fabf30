import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { putAgent } from '../../support/server/agents.ts';
import { endOfJob, type JobSeen } from '../../support/server/jobs.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { eventually } from '../../support/server/patience.ts';
import type { TestServer } from '../../support/server/server.ts';
import { startChats, tenant, until } from './chats.ts';

const random = new Random();
const chats = closeAfterAll(await startChats());
const { vendor } = chats;
const servers = [chats.server, await chats.startBeside(), await chats.startBeside()];
afterEach(() => chats.forget());
const kinds = ['/chat', '/chat-async', '/chat-stream'] as const;
/** In each round. */
const requests = 8;

test('requests of a session run in the order in which they were accepted, whatever their kind, and know the earlier ones', async () => {
  for (let round = 0; round < trials(2); round += 1) {
    const session = randomUUID();
    chats.forget();
    vendor.behave(({ text }) => ({ kind: 'answer', text: `[${text.length}]`, delay: random.below(60) }));
    const ends: Promise<unknown>[] = [];
    for (let index = 0; index < requests; index += 1) {
      const kind = kinds[random.below(3)] ?? '/chat';
      const { end } = await untilAccepted(kind, `m${index}`, session, {
        on: servers[random.below(3)],
        place: index + 1,
      });
      ends.push(end);
    }
    await Promise.all(ends);
    const seen = messagesSeen();
    expect(seen.map((messages) => messages.at(-1))).toEqual(
      Array.from({ length: requests }, (_, index) => `m${index}`),
    );
    for (const [index, messages] of seen.entries()) {
      const before = index === 0 ? ['Be brief.'] : [...(seen[index - 1] ?? []), messages.at(-2)];
      expect(messages.slice(0, -1)).toEqual(before);
    }
    expect(await chats.logsOf(session)).toHaveLength(requests);
  }
});

test('a chat waits for a job that was accepted before it, also where the process that had taken the job has died', async () => {
  const session = randomUUID();
  const release = holdFirst();
  const first = chat('first', session);
  await eventually(() => vendor.requests.length).toBe(1);
  const job = await queue('job', session);
  // As left behind by a process that took it and died.
  await sql("update job set attempt = attempt + 1, held_until = now() + interval '1 s' where id = $1", job);
  const last = chat('last', session, servers[1]);
  await until(async () => (await turnsOf(session)) === 3);
  release();
  expect((await last).status).toBe(200);
  expect((await first).status).toBe(200);
  expect(lastMessages()).toEqual(['first', 'job', 'last']);
});

test('a job that is deleted, and one that must not begin, give up their places, and each has one log', async () => {
  const session = randomUUID();
  await putAgent(chats.server, { tenant, token: chats.token, id: 'closing' });
  const release = holdFirst();
  const first = chat('first', session);
  await eventually(() => vendor.requests.length).toBe(1);
  const deleted = await queue('deleted', session);
  const skipped = await queue('skipped', session, 'closing');
  const { token } = chats;
  const { status } = await chats.server.call(`/ai-service/${tenant}/jobs/${deleted}`, { token, method: 'DELETE' });
  expect(status).toBe(204);
  await putAgent(chats.server, { tenant, token, id: 'closing' }, { enabled: false });
  const last = chat('last', session, servers[1]);
  await until(async () => (await turnsOf(session)) === 4);
  release();
  expect((await first).status).toBe(200);
  expect((await last).status).toBe(200);
  expect(await ended(skipped)).toMatchObject({ status: 'skipped' });
  expect(lastMessages()).toEqual(['first', 'last']);
  await chats.server.context.agents.chats.upkeep(lookAtOnce(chats.server.database.db));
  await servers[1]?.context.agents.chats.upkeep(lookAtOnce(chats.server.database.db));
  const logs = await chats.logsOf(session);
  expect(logs.map(({ cause }) => cause).sort()).toEqual(['cancelled', 'cancelled', undefined, undefined]);
  expect(logs.flatMap(({ messages }) => messages.map(({ message }) => message))).toEqual(
    expect.arrayContaining([
      'The agent is disabled.',
      expect.stringContaining('Its process or its job ended before there was an answer.'),
    ]),
  );
});

test('jobs that wait for their session take no place of a worker', async () => {
  const session = randomUUID();
  const release = holdFirst();
  const first = chat('first', session);
  await eventually(() => vendor.requests.length).toBe(1);
  const waiting: string[] = [];
  // More than all three processes run for one tenant.
  for (let index = 0; index < 15; index += 1) waiting.push(await queue(`waits ${index}`, session));
  const otherJob = await queue('other', randomUUID());
  expect(await ended(otherJob)).toMatchObject({ status: 'success' });
  expect(lastMessages()).toEqual(['first', 'other']);
  release();
  expect((await first).status).toBe(200);
  for (const id of waiting) expect(await ended(id)).toMatchObject({ status: 'success' });
  expect(lastMessages().slice(2)).toEqual(waiting.map((_, index) => `waits ${index}`));
});

test('a chat whose agent is disabled while it waits for its session is answered 409, and nothing is sent', async () => {
  const session = randomUUID();
  await putAgent(chats.server, { tenant, token: chats.token, id: 'closing' }, { enabled: true });
  const release = holdFirst();
  const first = chat('first', session);
  await eventually(() => vendor.requests.length).toBe(1);
  const late = chats.chat({ agentId: 'closing', message: 'late' }, { 'session-id': session });
  await until(async () => (await turnsOf(session)) === 2);
  await putAgent(chats.server, { tenant, token: chats.token, id: 'closing' }, { enabled: false });
  release();
  expect((await first).status).toBe(200);
  expect((await late).status).toBe(409);
  expect(lastMessages()).toEqual(['first']);
});

test('a job whose process stops before its call keeps its place', async () => {
  const session = randomUUID();
  const release = holdFirst();
  const first = chat('first', session);
  await eventually(() => vendor.requests.length).toBe(1);
  const { chats: ofServer } = chats.server.context.agents;
  const id = await queue('job', session);
  const [job] = await sql<{ input: string }>('select input from job where id = $1', id);
  const stop = new AbortController();
  // As a worker runs it whose process is stopping.
  const outcome = ofServer
    .run({ ...JSON.parse(job?.input ?? ''), signal: stop.signal })
    .catch((error: unknown) => error);
  await sleep(20);
  stop.abort(new Error('the process ends'));
  expect(await outcome).toMatchObject({ message: 'the process ends' });
  await ofServer.upkeep(lookAtOnce(chats.server.database.db));
  const last = chat('last', session, servers[1]);
  await until(async () => (await turnsOf(session)) === 3);
  release();
  expect((await first).status).toBe(200);
  expect((await last).status).toBe(200);
  expect(await ended(id)).toMatchObject({ status: 'success' });
  expect(lastMessages()).toEqual(['first', 'job', 'last']);
  expect(await chats.logsOf(session)).toHaveLength(3);
});

/** Sends a request and waits until it is accepted. Returns its end. */
async function untilAccepted(
  kind: string,
  message: string,
  session: string,
  { on, place }: { on: TestServer | undefined; place: number },
): Promise<{ end: Promise<unknown> }> {
  const headers = { 'session-id': session };
  const sent = chats.chat({ agentId: 'desk', message }, headers, on, kind);
  if (kind === '/chat') {
    await until(async () => (await turnsOf(session)) === place, 10);
    return { end: sent.then(({ status }) => expect(status).toBe(200)) };
  }
  // A stream is accepted when its headers come, a job when it is made.
  const response = await sent;
  if (kind === '/chat-stream') return { end: response.text() };
  const { jobId } = (await response.json()) as { jobId: string };
  return { end: ended(jobId).then((job) => expect(job).toMatchObject({ status: 'success' })) };
}

test('a chat by a job that is deleted during its call is logged as given up', async () => {
  const session = randomUUID();
  const release = holdFirst();
  const job = await queue('first', session);
  await eventually(() => vendor.requests.length).toBe(1);
  await sql('delete from job where id = $1', job);
  await eventually(async () => (await chats.logsOf(session)).length).toBe(1);
  expect(JSON.stringify(await chats.logsOf(session))).toContain('Given up: ');
  release();
});

/** The vendor answers its first request when the returned function is called, and the others at once. */
function holdFirst(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  vendor.behave(({ text }) => ({ kind: 'answer', ...(text.endsWith('first') ? { after: promise } : {}) }));
  return resolve;
}

function chat(message: string, session: string, on?: TestServer): Promise<Response> {
  return chats.chat({ agentId: 'desk', message }, { 'session-id': session }, on);
}

async function queue(message: string, session: string, agentId = 'desk'): Promise<string> {
  const headers = { 'session-id': session };
  const response = await chats.chat({ agentId, message }, headers, chats.server, '/chat-async');
  expect(response.status).toBe(201);
  return ((await response.json()) as { jobId: string }).jobId;
}

function ended(id: string): Promise<JobSeen> {
  const { server, token } = chats;
  return endOfJob((path, init) => server.call(path, { token, ...init }), tenant, id);
}

function messagesSeen(): string[][] {
  return vendor.requests.map(({ body }) => (body.messages ?? []).map(({ content }) => String(content)));
}

function lastMessages(): (string | undefined)[] {
  return messagesSeen().map((messages) => messages.at(-1));
}

async function turnsOf(session: string): Promise<number> {
  const [row] = await sql<{ turns: number }>('select turns from agent_session where id = $1', session);
  return row?.turns ?? 0;
}

async function sql<Row>(text: string, value: string): Promise<Row[]> {
  return (await chats.server.database.pool.query(text, [value])).rows;
}
