import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { waitsForSession } from '../../../src/desk/agents/turn-store.ts';
import { createDispatcher, jobPlaces } from '../../../src/desk/jobs/dispatcher.ts';
import { chatDocument, exportDocument, type JobType } from '../../../src/desk/jobs/job.ts';
import { insertJob, type TakenJob, updateJob } from '../../../src/desk/jobs/job-store.ts';
import { requeue, takeNextJob } from '../../../src/desk/jobs/queue-store.ts';
import { createJobs, maxWaiting } from '../../../src/desk/jobs/service.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { eventually } from '../../support/server/patience.ts';

const tenants = ['busy', 'busier', 'busiest', ...Array.from({ length: 6 }, (_, index) => `busy${index}`)];

const database = closeAfterAll(await createTestDatabase());
for (const tenant of [...tenants, 'bystander', 'counted']) await createTenant(database.db, tenant);

test('a bystander has its chat begun, whatever four other tenants have queued', async () => {
  const { begun, start, endAll } = dispatching();
  const attackers = tenants.slice(0, 4);
  for (const tenant of attackers) await queue('AGENT_CHAT', tenant, 60);
  start();
  const { maxOfTenant } = jobPlaces.AGENT_CHAT;
  await eventually(() => begun.length).toBe(4 * maxOfTenant);
  // None of them has ended, and no more of theirs begin.
  await sleep(1_200);
  const ofTenant = (tenant: string) => begun.filter((job) => job.tenant === tenant).length;
  expect(attackers.map(ofTenant)).toEqual(attackers.map(() => maxOfTenant));
  await queue('AGENT_CHAT', 'bystander', 1);
  await eventually(() => ofTenant('bystander')).toBe(1);
  await endAll();
});

test('a bystander has its export begun where the exports of others fill all places and do not end', async () => {
  const { begun, start, endAll } = dispatching();
  const { places } = jobPlaces.EXPORT;
  const attackers = tenants.slice(0, places);
  for (const tenant of attackers) await queue('EXPORT', tenant, 2);
  start();
  await eventually(() => begun.length).toBe(places);
  // They have no reason to make way while no other tenant waits.
  await sleep(1_200);
  expect(begun.map(({ tenant }) => tenant).toSorted()).toEqual(attackers.toSorted());
  await queue('EXPORT', 'bystander', 1);
  await eventually(() => begun.filter(({ tenant }) => tenant === 'bystander').length).toBe(1);
  await endAll();
});

test('jobs are handed out tenant by tenant, and of a tenant in the order they were queued', async () => {
  const { begun, start, endOldest, endAll } = dispatching();
  const of: Record<string, string[]> = {};
  for (const tenant of ['busy', 'busier', 'bystander']) of[tenant] = await queue('EXPORT', tenant, 4);
  start();
  for (let count = 3; count <= 12; count++) {
    await eventually(() => begun.length).toBe(Math.min(count, 12));
    endOldest();
  }
  for (let round = 0; round < 4; round++) {
    const ofRound = begun.slice(round * 3, round * 3 + 3).map(({ tenant }) => tenant);
    expect(ofRound.toSorted()).toEqual(['busier', 'busy', 'bystander']);
  }
  for (const tenant of Object.keys(of)) {
    expect(begun.filter((job) => job.tenant === tenant).map(({ id }) => id)).toEqual(of[tenant]);
  }
  await endAll();
});

test('two processes share the jobs, and none is handed out twice', async () => {
  const first = dispatching();
  const second = dispatching();
  const ids = await queue('AGENT_CHAT', 'busy', 2 * jobPlaces.AGENT_CHAT.maxOfTenant);
  first.start();
  second.start();
  await eventually(() => first.begun.length + second.begun.length).toBe(ids.length);
  expect([...first.begun, ...second.begun].map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  await first.endAll();
  await second.endAll();
});

test(`at most ${maxWaiting} jobs of a tenant wait; the next is 429, and those of another tenant are taken`, async () => {
  const jobs = createJobs({
    noteDownload: () => Promise.resolve(),
    db: database.db,
    waitsForSession,
    logger: createLogger('silent'),
    now: () => Date.now(),
    documents: { page: () => Promise.reject(new Error('nothing is listed here')) },
    exportHistory: {
      check: () => ({ usesContext: false }),
      run: () => Promise.reject(new Error('nothing is exported here')),
    },
    scopesNow: async () => [],
    runChat: () => Promise.reject(new Error('nobody chats here')),
  });
  const exportRequest = { q: '', format: 'CSV' as const, requestId: 'r', clientId: 'c' };
  await queue('AGENT_CHAT', 'counted', maxWaiting - 3);
  // Several at once: each of the last places is taken once.
  const made = await Promise.allSettled(Array.from({ length: 8 }, () => jobs.startExport('counted', exportRequest)));
  expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
  await expect(jobs.startExport('counted', exportRequest)).rejects.toMatchObject({
    type: 'rate_limit_exceeded',
    message: `At most ${maxWaiting} jobs of a tenant wait. Try again later.`,
    headers: { 'Retry-After': '10' },
  });
  await jobs.startExport('bystander', exportRequest);
  // A job that a worker has taken up no longer waits.
  expect(await takeNextJob(database.db, 'counted', { type: 'EXPORT', waitsForSession })).toBeDefined();
  await jobs.startExport('counted', exportRequest);
  await database.pool.query('delete from job');
});

async function queue(type: JobType, tenant: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  for (const id of ids) {
    await inTransaction(database.db, async (transaction) => {
      const document =
        type === 'EXPORT' ? exportDocument(id, 0, exportRequest) : chatDocument(id, 0, chatOf(tenant), unguarded);
      await insertJob(transaction, tenant, { document, input: {} });
    });
  }
  return ids;
}

const exportRequest = { q: '', format: 'CSV', requestId: 'r', clientId: 'c' } as const;
const unguarded = { guardsMessage: false };

function chatOf(tenant: string) {
  const credentials = { clientId: 'c', clientName: 'Jane', scopes: [] };
  return { tenant, agentId: 'a', message: 'm', sessionId: 's', requestId: 'r', logId: randomUUID(), credentials };
}

/** A process whose jobs end on demand. An export whose turn is over waits again. */
function dispatching() {
  const begun: TakenJob[] = [];
  const open: (() => void)[] = [];
  let isOver = false;
  const dispatcher = createDispatcher({
    db: database.db,
    waitsForSession,
    logger: createLogger('silent'),
    async work(job, turn) {
      begun.push(job);
      if (!isOver) {
        await new Promise<void>((resolve) => {
          open.push(resolve);
          turn.addEventListener('abort', resolve);
        });
      }
      if (turn.aborted && !isOver) return await requeue(database.db, job, 0);
      await updateJob(database.db, job, { ...job.document, status: 'success' });
    },
  });
  return {
    begun,
    start: () => dispatcher.start(lookAtOnce(database.db)),
    endOldest: () => open.shift()?.(),
    async endAll() {
      isOver = true;
      for (const end of open) end();
      await dispatcher.close();
      await database.pool.query('delete from job');
    },
  };
}
