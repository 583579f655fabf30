import { expect, test } from 'vitest';
import { shareFigures } from '../../../src/core/fairness/semaphore.ts';
import { ThreadLost } from '../../../src/core/fairness/thread.ts';
import { maxWaitingCalls, minThreads, ThreadPool } from '../../../src/core/fairness/threads.ts';
import { doWork } from '../../../src/core/fairness/work.ts';
import { BodyReader, bodyThreadsName, maxBodyTime } from '../../../src/sources/recorder/body-reader.ts';
import type { ReadBody } from '../../../src/sources/recorder/read-body.ts';

/** The fewest that a recorder has: each takes its time to start. */
const threads = minThreads;
const half = threads / 2;
const reader = new BodyReader(undefined, new ThreadPool({ size: threads, name: bodyThreadsName }));

/** Reads a body with so many changes. */
async function read(tenant: string, changes = 1): Promise<ReadBody | 'longer'> {
  const line = (id: number) =>
    JSON.stringify({
      id: `i${id}`,
      op: 'insert',
      entity: 'order',
      entityId: `${id}`,
      at: '2026-01-02T03:04:05Z',
      after: { note: 'n'.repeat(1_000) },
    });
  const bytes = Buffer.from(Array.from({ length: changes }, (_none, index) => line(index)).join('\n'));
  const reading = { tenant, clientName: 'Shop', maySetActor: false, headers: {} };
  return await doWork({ tenant }, () =>
    reader.read({ ...reading, bytes, encoding: 'identity', format: 'lines', reserved: bytes.length }),
  );
}

/** Bodies that have a thread, and bodies that wait for one. */
function bodies(): { taken: number; waiting: number } {
  const { taken, waiting } = shareFigures().find(({ name }) => name === bodyThreadsName) ?? {};
  return { taken: taken ?? 0, waiting: waiting ?? 0 };
}

test('a body waits while every thread has one, and is read once a thread is free', async () => {
  const first = Array.from({ length: threads }, (_none, index) => read(`t${index}`));
  expect(bodies()).toEqual({ taken: threads, waiting: 0 });
  const last = read('last');
  expect(bodies()).toEqual({ taken: threads, waiting: 1 });
  await Promise.race(first);
  expect(bodies()).toMatchObject({ waiting: 0 });
  expect(await last).toMatchObject({ changes: { length: 1 } });
  await Promise.all(first);
  expect(bodies()).toEqual({ taken: 0, waiting: 0 });
});

test('a tenant has half of the threads, and another tenant is read beside it at once', async () => {
  const crowd = Array.from({ length: half }, () => read('crowd'));
  expect(bodies()).toEqual({ taken: half, waiting: 0 });
  crowd.push(read('crowd'));
  expect(bodies()).toEqual({ taken: half, waiting: 1 });
  const bystander = read('bystander');
  expect(bodies()).toEqual({ taken: half + 1, waiting: 1 });
  for (const body of [...crowd, bystander]) expect(await body).toMatchObject({ changes: { length: 1 } });
});

test('256 bodies of a tenant wait; the next is 429, but not that of another tenant', async () => {
  const crowd = Array.from({ length: half + maxWaitingCalls }, () => read('crowd'));
  expect(bodies()).toEqual({ taken: half, waiting: maxWaitingCalls });
  await expect(read('crowd')).rejects.toMatchObject({ status: 429, headers: { 'Retry-After': '1' } });
  const bystander = read('bystander');
  expect(bodies()).toEqual({ taken: half + 1, waiting: maxWaitingCalls });
  for (const body of [...crowd, bystander]) expect(await body).toMatchObject({ changes: { length: 1 } });
});

test('a body may take 30 s of a thread: then it is 503', async () => {
  const limits: unknown[] = [];
  const late = new BodyReader(undefined, {
    call: async (_call, timeLimit) => {
      limits.push(timeLimit);
      throw new ThreadLost(true, undefined);
    },
  });
  const bytes = Buffer.from('[]');
  const body = { tenant: 'acme', clientName: 'Shop', maySetActor: false, headers: {}, bytes, reserved: bytes.length };
  await expect(late.read({ ...body, encoding: 'identity', format: 'json' })).rejects.toMatchObject({
    status: 503,
    type: 'service_unavailable',
    headers: { 'Retry-After': '5' },
  });
  expect(limits).toEqual([maxBodyTime]);
});
