import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { unlessAborted, withDeadline, within } from '../../src/concurrency/deadline.ts';
import { Stop, type StopSignal } from '../../src/stop-signal.ts';

const untilAborted = (signal: StopSignal) =>
  new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

test('work that ends before its deadline keeps its result, and its signal is not aborted', async () => {
  let given: StopSignal | undefined;
  const result = await withDeadline(60_000, undefined, async (signal) => {
    given = signal;
    return 'done';
  });
  expect([result, given?.aborted]).toEqual(['done', false]);
});

test('work that passes its deadline is aborted with 503', async () => {
  await expect(withDeadline(60, undefined, untilAborted)).rejects.toMatchObject({ type: 'service_unavailable' });
});

test('work whose client has gone is aborted with the reason of that', async () => {
  const gone = new Stop();
  const work = withDeadline(60_000, gone, untilAborted);
  gone.abort(new Error('the client has gone'));
  await expect(work).rejects.toThrow('the client has gone');
  await expect(withDeadline(60_000, gone, async () => 'done')).rejects.toThrow('the client has gone');
});

test('work that is shared goes on for the others where one of them gives up', async () => {
  const stop = new Stop();
  const { promise, resolve } = Promise.withResolvers<string>();
  const [impatient, patient] = [unlessAborted(promise, stop), unlessAborted(promise, new Stop())];
  stop.abort(new Error('gave up'));
  await expect(impatient).rejects.toThrow('gave up');
  resolve('done');
  expect(await patient).toBe('done');
});

test('a result that comes too late is an error that names the limit', async () => {
  expect(await within(60_000, Promise.resolve('done'))).toBe('done');
  await expect(within(20, sleep(60_000, 'late', { ref: false }))).rejects.toThrow('no answer within 20 ms');
});
