import { expect, test } from 'vitest';
import { Thread, ThreadLost } from '../../../src/core/concurrency/thread.ts';
import type { ThreadBodyReply, ThreadBodyRequest } from '../../../src/sources/recorder/body-worker.ts';

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
