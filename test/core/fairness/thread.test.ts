import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { Thread, ThreadLost } from '../../../src/core/fairness/thread.ts';
import { nestedLists } from './nested-lists.ts';

const file = new URL('./levels-worker.ts', import.meta.url);

test('a request gives up a thread that starts too slowly; the thread continues and answers the next one', async () => {
  const thread = new Thread<{ levels: number; sent?: unknown }, unknown>(
    file,
    { memory: 64 },
    { request: 1, thread: 60_000, load: 60_000 },
  );
  await expect(thread.ask({ levels: 1 })).rejects.toThrow(ThreadLost);
  expect(thread.ended).toBe(false);
  await expect.poll(async () => await thread.ask({ levels: 2 }).catch(() => undefined)).toEqual([[]]);
});

test('a thread that does not start is ended', async () => {
  const thread = new Thread<{ levels: number; sent?: unknown }, unknown>(
    file,
    { memory: 64 },
    { request: 60_000, thread: 1, load: 60_000 },
  );
  await expect(thread.ask({ levels: 1 })).rejects.toThrow(ThreadLost);
  expect(thread.ended).toBe(true);
});

test('a thread that loads for too long is ended: its late reply answers no other request', async () => {
  const thread = new Thread<{ id: number; loading: number }, number>(
    new URL('./slow-loading-worker.ts', import.meta.url),
    { memory: 64 },
    { request: 60_000, thread: 60_000, load: 1_000 },
  );
  await expect(thread.ask({ id: 1, loading: 60_000 })).rejects.toThrow(ThreadLost);
  expect(thread.ended).toBe(true);
  await expect(thread.ask({ id: 2, loading: 0 })).rejects.toThrow(ThreadLost);
});

// Of what is sent, V8 copies level by level, on the stack.
const tooDeep = 100_000;

test.each([
  ['cannot be copied', { levels: 1, sent: () => {} }],
  ['has more levels than the stack has room for', { levels: 1, sent: nestedLists(tooDeep) }],
])('a request that %s is refused, and the thread answers the next one', async (_fault, sent) => {
  const thread = openLevelsThread();
  await expect(thread.ask(sent)).rejects.toThrow(ThreadLost);
  expect(await thread.ask({ levels: 2 })).toEqual([[]]);
});

test('an answer with more levels than the stack of its reader has room for is refused, and the thread answers the next one', async () => {
  const thread = openLevelsThread();
  // The thread has a larger stack than its reader: it can send what cannot be read.
  let levels = 1_000;
  let error: unknown;
  while (error === undefined) {
    levels = Math.ceil(levels * 1.2);
    error = await thread.ask({ levels }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  }
  expect(error).toBeInstanceOf(ThreadLost);
  expect(thread.ended, `${levels} levels`).toBe(false);
  expect(await thread.ask({ levels: 2 })).toEqual([[]]);
});

test('a thread that cannot read a request ends', async () => {
  const sender = new Worker(new URL('./deep-sender.ts', import.meta.url), { resourceLimits: { stackSizeMb: 64 } });
  onTestFinished(async () => void (await sender.terminate()));
  const [outcome] = await once(sender, 'message');
  expect(outcome).toEqual({ isLost: true, hasEnded: true });
});

function openLevelsThread(): Thread<{ levels: number; sent?: unknown }, unknown> {
  return new Thread(file, { memory: 64 });
}
