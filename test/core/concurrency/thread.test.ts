import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { Thread, ThreadLost } from '../../../src/core/concurrency/thread.ts';
import type { ThreadBodyReply, ThreadBodyRequest } from '../../../src/sources/recorder/body-worker.ts';
import { nestedLists } from './nested-lists.ts';

const file = new URL('../../../src/sources/recorder/body-worker.ts', import.meta.url);
const request = (id: string): ThreadBodyRequest => ({
  bytes: Buffer.from(
    `{"id":"${id}","op":"insert","entity":"order","entityId":"${id}","at":"2026-01-02T03:04:05Z","after":{"a":1}}`,
  ),
  encoding: 'identity',
  format: 'json',
  reserved: 1000,
  tenant: 'acme',
  clientName: 'Shop',
  maySetActor: false,
  headers: {},
  mapping: undefined,
});

test('a request gives up a thread that starts too slowly; the thread goes on and answers the next one', async () => {
  const thread = new Thread<ThreadBodyRequest, ThreadBodyReply>(file, { memory: 64 }, { request: 1, thread: 60_000 });
  await expect(thread.ask(request('first'))).rejects.toThrow(ThreadLost);
  expect(thread.ended).toBe(false);
  await expect
    .poll(async () => await thread.ask(request('second')).catch(() => undefined))
    .toMatchObject({ changes: [{ kind: 'change', change: { entityId: 'second' } }] });
  await thread.end();
});

test('a thread that does not start is ended', async () => {
  const thread = new Thread<ThreadBodyRequest, ThreadBodyReply>(file, { memory: 64 }, { request: 60_000, thread: 1 });
  await expect(thread.ask(request('first'))).rejects.toThrow(ThreadLost);
  expect(thread.ended).toBe(true);
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

test('the process goes on until a thread that it ends, with a request, has ended', async () => {
  const ending = new Worker(new URL('./ended-at-once.ts', import.meta.url));
  onTestFinished(async () => void (await ending.terminate()));
  const messages: unknown[] = [];
  ending.on('message', (message) => messages.push(message));
  const [code] = await once(ending, 'exit');
  expect([code, messages]).toEqual([0, ['ended']]);
});

function openLevelsThread(): Thread<{ levels: number; sent?: unknown }, unknown> {
  const thread = new Thread<{ levels: number; sent?: unknown }, unknown>(
    new URL('./levels-worker.ts', import.meta.url),
    { memory: 64 },
  );
  onTestFinished(() => thread.end());
  return thread;
}
