import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AnnalsError } from '../../../src/core/errors.ts';
import { waitsForSession } from '../../../src/desk/agents/turn-store.ts';
import type { JobDocument } from '../../../src/desk/jobs/schemas.ts';
import { createJobs, type Jobs } from '../../../src/desk/jobs/service.ts';
import type { QueuedChat, RunQueuedChat } from '../../../src/desk/queued-chat.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { letOthersWork } from '../../support/server/patience.ts';

const tenant = 'chats';
const reader = { tenant, clientId: 'reader', readsHistory: true, readsContext: true, seesAll: true };
const unguarded = { guardsMessage: false };
const database = closeAfterAll(await createTestDatabase());
await createTenant(database.db, tenant);

describe('a chat that is a job', () => {
  test('is run with what was queued, and its job ends with the response', async () => {
    const seen: QueuedChat[] = [];
    const jobs = await workWith(async (queued, { callBegins }) => {
      seen.push(queued);
      await callBegins();
      return {
        message: 'Hello \0 \ud800',
        response: [{ agentId: queued.agentId, message: 'Hello \0 \ud800' }],
        fromHistory: false,
      };
    });
    const chat = chatOf('Hi');
    const job = await ended(jobs, await queue(jobs, chat));
    expect(seen).toEqual([chat]);
    expect(job).toMatchObject({
      type: 'AGENT_CHAT',
      status: 'success',
      agentId: 'agent',
      sessionId: chat.sessionId,
      requestId: chat.requestId,
      request: 'Hi',
      message: 'Hello \0 \ufffd',
      metadata: { version: 2 },
      response: [{ agentId: 'agent', message: 'Hello \0 \ufffd' }],
    });
  });

  test('is not there before the transaction that queues it is committed, nor when it is rolled back', async () => {
    const seen: string[] = [];
    const jobs = await workWith(async ({ message }) => {
      seen.push(message);
      return { message: '', response: null, fromHistory: false };
    });
    const rolledBack = inTransaction(database.db, async (transaction) => {
      await jobs.enqueueAgentChat(transaction, chatOf('never'), unguarded);
      throw new Error('rolled back');
    });
    await expect(rolledBack).rejects.toThrow('rolled back');
    await ended(jobs, await queue(jobs, chatOf('after')));
    expect(seen).toEqual(['after']);
  });

  test('that fails ends with the error for the client, and without internals', async () => {
    const jobs = await workWith(async ({ message }) => {
      if (message === 'refused') throw new AnnalsError('insufficient_permissions', 'You may not.');
      if (message === 'disabled') throw new AnnalsError('conflict_resource', 'The agent is disabled.');
      throw new Error('secret of the inside');
    });
    const refused = await ended(jobs, await queue(jobs, chatOf('refused')));
    expect(refused).not.toHaveProperty('message');
    expect(refused).toMatchObject({
      status: 'failure',
      request: 'refused',
      metadata: { version: 2, error: { type: 'insufficient_permissions', message: 'You may not.' } },
    });
    const skipped = await ended(jobs, await queue(jobs, chatOf('disabled')));
    expect(skipped).toMatchObject({
      status: 'skipped',
      metadata: { error: { type: 'conflict_resource', message: 'The agent is disabled.' } },
    });
    const broken = await ended(jobs, await queue(jobs, chatOf('broken')));
    expect(broken).toMatchObject({ status: 'failure', metadata: { error: { type: 'internal_service_error' } } });
    expect(JSON.stringify(broken)).not.toContain('secret');
  });

  test('whose process died after the call began ends as a failure, and is not run again', async () => {
    let calls = 0;
    const jobs = await workWith(async () => {
      calls += 1;
      return { message: '', response: null, fromHistory: false };
    });
    const id = await inTransaction(database.db, async (transaction) => {
      const made = await jobs.enqueueAgentChat(transaction, chatOf('Hi'), unguarded);
      await transaction.updateTable('job').set({ call_began: true }).where('id', '=', made).execute();
      return made;
    });
    const job = await ended(jobs, id);
    expect(job).toMatchObject({ status: 'failure', metadata: { error: { type: 'provider_error' } } });
    expect(calls).toBe(0);
  });

  test('whose call has not begun is handed back when its process ends, and run by another', async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const first = await open(async (_chat, { signal }) => {
      begin();
      while (!signal.aborted) await sleep(10);
      throw new Error('stopped');
    }, 50);
    const id = await queue(first, chatOf('Hi'));
    await begun;
    await first.close();
    expect(JSON.parse(await first.find(reader, id))).toMatchObject({ status: 'in_progress' });
    const second = await workWith(async () => ({ message: '', response: 'by another', fromHistory: false }));
    expect(await ended(second, id)).toMatchObject({ status: 'success', response: 'by another' });
  });

  test('that is deleted while it runs is stopped, and its call does not go out', async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { promise: outcome, resolve: tell } = Promise.withResolvers<unknown>();
    const jobs = await workWith(async (_chat, { signal, callBegins }) => {
      begin();
      while (!signal.aborted) await sleep(10);
      await callBegins().then(() => tell('a call'), tell);
      throw new Error('stopped');
    });
    const id = await queue(jobs, chatOf('Hi'));
    await begun;
    await jobs.remove(reader, id, { deletesAll: true });
    expect(await outcome).toMatchObject({ name: 'JobLost' });
    await expect(jobs.find(reader, id)).rejects.toMatchObject({ type: 'resource_not_found' });
  });

  test('whose worker has fallen silent is handed out again, and not before', async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { promise: ending, resolve: end } = Promise.withResolvers<void>();
    let runs = 0;
    const jobs = await workWith(async () => {
      runs += 1;
      begin();
      if (runs === 1) await ending;
      return { message: '', response: runs, fromHistory: false };
    });
    const id = await queue(jobs, chatOf('Hi'));
    await begun;
    await letOthersWork(3_000);
    expect(runs).toBe(1);
    // The worker lives, and says so; now and then it is too late.
    while (runs === 1) {
      // A job that is free already waits for a worker: it is left as it is.
      await sql`update job set held_until = now() where tenant = ${tenant} and id = ${id} and attempt = 1 and held_until is not null`.execute(
        database.db,
      );
      await sleep(50);
    }
    expect(await ended(jobs, id)).toMatchObject({ status: 'success', response: 2 });
    // The outcome of the first no longer counts.
    end();
    await letOthersWork(100);
    expect(JSON.parse(await jobs.find(reader, id))).toMatchObject({ response: 2 });
  });
});

async function workWith(runChat: RunQueuedChat): Promise<Jobs> {
  const jobs = await open(runChat);
  onTestFinished(() => jobs.close());
  return jobs;
}

async function open(runChat: RunQueuedChat, chatGrace = 20_000): Promise<Jobs> {
  const jobs = createJobs({
    noteDownload: () => Promise.resolve(),
    db: database.db,
    waitsForSession,
    logger: createLogger('silent'),
    now: () => Date.UTC(2026, 8, 15),
    documents: { page: () => Promise.reject(new Error('nothing is listed here')) },
    exportHistory: {
      check: () => ({ usesContext: false }),
      run: () => Promise.reject(new Error('nothing is exported here')),
    },
    scopesNow: async () => [],
    runChat,
    chatGrace,
  });
  jobs.work(lookAtOnce(database.db));
  return jobs;
}

async function queue(jobs: Jobs, chat: QueuedChat): Promise<string> {
  const id = await inTransaction(database.db, (transaction) => jobs.enqueueAgentChat(transaction, chat, unguarded));
  jobs.wakeAgentChats(chat.tenant);
  return id;
}

async function ended(jobs: Jobs, id: string): Promise<JobDocument> {
  for (;;) {
    const job: JobDocument = JSON.parse(await jobs.find(reader, id));
    if (job.status !== 'in_progress') return job;
    await sleep(20);
  }
}

function chatOf(message: string): QueuedChat {
  return {
    tenant,
    agentId: 'agent',
    message,
    sessionId: randomUUID(),
    requestId: randomUUID(),
    logId: randomUUID(),
    credentials: { clientId: 'c', clientName: 'Jane', scopes: ['ai.agentexecution_manage'] },
  };
}
