import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { currentWork, doWork, enterWork, ofCurrentWork, Work } from '../../../src/core/fairness/work.ts';
import { Stop } from '../../../src/core/stop-signal.ts';
import { eventually } from '../../support/server/patience.ts';

const tooLate = { type: 'service_unavailable', status: 503 };

test('whatever follows from work belongs to it, and to nothing else', async () => {
  const [ofAcme, ofRival] = [new Work({ tenant: 'acme' }), new Work({ tenant: 'rival' })];
  const seen = await Promise.all(
    [ofAcme, ofRival].map((work) =>
      enterWork(work, async () => {
        await sleep(1);
        return currentWork();
      }),
    ),
  );
  expect(seen).toEqual([ofAcme, ofRival]);
  expect(currentWork()).toBeUndefined();
});

test('while its limit runs, all steps of a work have the rest of it', async () => {
  const work = new Work({ tenant: 'acme' });
  work.limit(80);
  const [first, second] = [work.beginStep(), work.beginStep()];
  expect(first.signal).toBe(work.signal);
  await eventually(() => second.signal.aborted).toBe(true);
  expect(work.signal.reason).toMatchObject(tooLate);
});

test('a limit that was ended aborts nothing: each step has its own time then', async () => {
  const work = new Work({ tenant: 'acme', stepLimit: 80 });
  work.limit(30);
  work.endLimit();
  const [short, long] = [work.beginStep(), work.beginStep()];
  short.end();
  await eventually(() => long.signal.aborted).toBe(true);
  expect(long.signal.reason).toMatchObject(tooLate);
  expect([short.signal.aborted, work.signal.aborted]).toEqual([false, false]);
});

test('the time of a pause does not count', async () => {
  const work = new Work({ tenant: 'acme' });
  work.limit(150);
  work.pauseLimit();
  await sleep(400);
  expect(work.signal.aborted).toBe(false);
  work.resumeLimit();
  await eventually(() => work.signal.aborted).toBe(true);
});

test('a pause of work without a limit gives it none', async () => {
  const work = new Work({ tenant: 'acme', stepLimit: 60_000 });
  work.pauseLimit();
  work.resumeLimit();
  expect(work.beginStep().signal).not.toBe(work.signal);
});

test('a work that is aborted aborts its steps, also those that begin later', () => {
  const work = new Work({ tenant: 'acme' });
  const before = work.beginStep();
  work.abort(new Error('gone'));
  work.abort(new Error('too late'));
  for (const { signal } of [before, work.beginStep()]) expect(signal.reason).toMatchObject({ message: 'gone' });
});

test('work of its own continues where the request that began it is over', async () => {
  const request = new Work({ tenant: 'acme' });
  const own = enterWork(request, () =>
    doWork({ tenant: 'acme' }, async () => {
      request.abort(new Error('gone'));
      await sleep(1);
      return currentWork()?.beginStep().signal.aborted;
    }),
  );
  expect(await own).toBe(false);
});

test('work of its own ends by its signal and by its time', async () => {
  const untilAborted = async () => {
    const signal = currentWork()?.signal;
    await eventually(() => signal?.aborted).toBe(true);
    signal?.throwIfAborted();
  };
  const stop = new Stop();
  const stopped = doWork({ tenant: 'acme', signal: stop }, untilAborted);
  stop.abort(new Error('stopped'));
  await expect(stopped).rejects.toThrow('stopped');
  await expect(doWork({ tenant: 'acme', signal: stop }, async () => 'done')).rejects.toThrow('stopped');
  await expect(doWork({ tenant: 'acme', timeLimit: 30 }, untilAborted)).rejects.toMatchObject(tooLate);
});

test('pieces belong to the work that was current when their iterator was made, wherever they are read', async () => {
  const work = new Work({ tenant: 'acme' });
  const seen: unknown[] = [];
  async function* pieces() {
    try {
      for (;;) {
        seen.push(currentWork());
        yield 'piece';
      }
    } finally {
      seen.push('closed');
    }
  }
  for await (const piece of enterWork(work, () => ofCurrentWork(pieces()))) {
    expect([piece, currentWork()]).toEqual(['piece', undefined]);
    if (seen.length === 2) break;
  }
  expect(seen).toEqual([work, work, 'closed']);
});
