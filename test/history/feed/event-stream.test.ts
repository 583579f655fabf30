import { PassThrough, Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { EventStream, maxUnsent, silence, streamTime } from '../../../src/history/feed/event-stream.ts';
import type { FeedItem, Matches } from '../../../src/history/feed/read-matches.ts';
import { AccessTokenFault } from '../../../src/http/credentials.ts';

const minute = 60_000;

function item(position: number, bytes = 10): FeedItem {
  const text = JSON.stringify('x'.repeat(bytes));
  const names = { type: 'update', entity: 'order', entityId: '1', document: '', ref: '', identity: '' };
  return { ...names, position, fingerprint: 1, cursor: `c${position}`, at: 0, recordedAt: 0, text };
}

function portion(items: FeedItem[], caughtUp: boolean): Matches {
  const position = items.at(-1)?.position ?? 0;
  return { items, reached: { position, fingerprint: 1 }, cursor: `c${position}`, caughtUp, expired: 0 };
}

/** A stream fed by `push`, whose client reads nothing until `take`. */
function open(first: Matches, verifyAgain: () => Promise<void> = async () => {}, memory = 8 * maxUnsent) {
  const portions = new PassThrough({ objectMode: true });
  const pendingWrites: (() => void)[] = [];
  let isTaking = false;
  let taken = '';
  const chunks: Buffer[] = [];
  const response = new Writable({
    highWaterMark: 16_384,
    write(chunk: Buffer, _encoding, done) {
      taken += chunk.toString();
      chunks.push(chunk);
      if (isTaking) done();
      else pendingWrites.push(done);
    },
  });
  let bufferedBytes = 0;
  const reading = new AbortController();
  reading.signal.addEventListener('abort', () => portions.end());
  const stream = new EventStream({
    response,
    verifyAgain,
    begin: { position: 0, cursor: 'c0' },
    portions,
    reading,
    first,
    takeMemory(bytes) {
      if (bufferedBytes + bytes > memory) return undefined;
      bufferedBytes += bytes;
      return () => {
        bufferedBytes -= bytes;
      };
    },
  });
  stream.body.pipe(response);
  const running = stream.run();
  return {
    stream,
    response,
    running,
    push: (one: Matches) => portions.write(one),
    take() {
      isTaking = true;
      for (const done of pendingWrites.splice(0)) done();
    },
    taken: () => taken,
    chunks,
    held: () => bufferedBytes,
  };
}

test('a stream ends after 15 minutes, plus or minus one', async () => {
  for (let stream = 0; stream < 20; stream += 1) {
    const { stream: current, running } = open(portion([], true));
    const begun = performance.now();
    current.check(begun + 14 * minute - 100);
    expect(current.hasEnded).toBe(false);
    current.check(begun + 16 * minute + 100);
    expect(current.hasEnded).toBe(true);
    await running;
  }
  expect(streamTime).toEqual({ mean: 15 * minute, spread: minute });
});

test('a silent stream sends its position every 15 seconds', async () => {
  const { stream, take, taken } = open(portion([item(7)], true));
  take();
  await expect.poll(taken).toContain('event: caught-up');
  const now = performance.now();
  stream.check(now + silence / 2);
  expect(taken()).not.toContain('id: c7\nevent: position');
  stream.check(now + silence + 100);
  await expect.poll(taken).toMatch(/event: caught-up[\s\S]*id: c7\nevent: position\ndata: \{"position":7\}\n\n$/);
  stream.end();
});

test('a stream ends when its credentials expire, and stays open while they cannot be verified', async () => {
  let fault: Error = new Error('the database is away');
  const { stream, running } = open(portion([], true), () => Promise.reject(fault));
  stream.check(performance.now());
  await Promise.resolve();
  expect(stream.hasEnded).toBe(false);
  fault = new AccessTokenFault('expired');
  stream.check(performance.now());
  await running;
  expect(stream.hasEnded).toBe(true);
});

test('once caught up, a client with 1 MiB unread is cut off', async () => {
  const { push, response, running } = open(portion([], true));
  push(portion([item(1, maxUnsent - 20_000)], true));
  push(portion([item(2, 15_000), item(3, 100_000)], true));
  await expect.poll(() => response.writableLength).toBeGreaterThan(0);
  expect(response.destroyed).toBe(false);
  push(portion([item(4)], true));
  await expect.poll(() => response.destroyed).toBe(true);
  expect(running).toBeDefined();
});

test('before it has caught up, the stream waits for its client, however long an item is', async () => {
  const { push, response, take, taken } = open(portion([item(1, 2 * maxUnsent)], false));
  push(portion([item(2)], false));
  push(portion([item(3)], true));
  await expect.poll(() => response.writableLength).toBeGreaterThan(0);
  expect(response.destroyed).toBe(false);
  expect(taken()).not.toContain('id: c2\n');
  take();
  await expect.poll(taken).toContain('event: caught-up');
  expect(taken().match(/event: change/g)).toHaveLength(3);
});

test('the changes of a portion are one write, whose buffer all readers of a channel share', async () => {
  const [first, second] = [open(portion([], true)), open(portion([], true))];
  const shared = portion([item(1), item(2), item(3)], true);
  for (const reader of [first, second]) {
    reader.take();
    reader.push(shared);
    await expect.poll(reader.taken).toContain('id: c3\n');
  }
  const [sent, sentToSecond] = [first, second].map(({ chunks }) => chunks.at(-1));
  expect(sent?.toString().match(/event: change/g)).toHaveLength(3);
  expect(sentToSecond?.buffer).toBe(sent?.buffer);
  expect(sentToSecond?.byteOffset).toBe(sent?.byteOffset);
});

test('a long change reserves memory until its client has read it or left, and ends the stream if none is free', async () => {
  const long = portion([item(1, maxUnsent)], false);
  const reader = open(long);
  expect(reader.held()).toBeGreaterThan(maxUnsent);
  reader.take();
  reader.push(portion([item(2)], true));
  await expect.poll(reader.taken).toContain('event: caught-up');
  reader.stream.check(performance.now());
  expect(reader.held()).toBe(0);

  const gone = open(long);
  gone.response.destroy();
  await expect.poll(gone.held).toBe(0);

  const refused = open(long, undefined, maxUnsent);
  refused.take();
  await refused.running;
  expect(refused.stream.hasEnded).toBe(true);
  expect(refused.taken()).not.toContain('event: change');
});
