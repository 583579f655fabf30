import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { shareFigures } from '../../../src/core/concurrency/semaphore.ts';
import { maxWaitingCalls } from '../../../src/core/concurrency/thread-pool.ts';
import { doWork } from '../../../src/core/concurrency/work.ts';
import { BodyReader, maxBodyTime, minThreads } from '../../../src/sources/recorder/body-reader.ts';
import type { ReadBody } from '../../../src/sources/recorder/read-body.ts';

/** The fewest that a recorder has: each takes its time to start. */
const threads = minThreads;
const half = threads / 2;
const reader = new BodyReader(undefined, threads);

afterEach(() => vi.useRealTimers());
afterAll(() => reader.close());

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
  const { taken, waiting } = shareFigures().find(({ name }) => name === 'bodies of changes at work') ?? {};
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

test('a body may take 30 s and not longer: then it is 503, and the next one is read by another thread', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  // The time of a body begins once its thread has started.
  await read('acme');
  const settled = vi.fn();
  const slow = read('acme', 2_000);
  slow.then(settled, settled);
  await allButMessages();
  vi.advanceTimersByTime(maxBodyTime - 1);
  await allButMessages();
  expect(settled).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  await expect(slow).rejects.toMatchObject({
    status: 503,
    type: 'service_unavailable',
    headers: { 'Retry-After': '5' },
  });
  expect(await read('acme', 2_000)).toMatchObject({ changes: { length: 2_000 } });
});

/** Lets every promise go on that can, but takes no message of a thread: a body that a thread has is then being read. */
async function allButMessages(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.nextTick(resolve);
  });
}
