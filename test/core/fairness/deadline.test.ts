import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { setDeadline, unlessAborted, within } from '../../../src/core/fairness/deadline.ts';
import { Stop } from '../../../src/core/stop-signal.ts';
import { eventually } from '../../support/server/patience.ts';

test('work whose deadline was taken away is not aborted, another one is, with 503', async () => {
  const [early, late] = [new Stop(), new Stop()];
  const takeAway = setDeadline(early, 60);
  setDeadline(late, 100);
  takeAway();
  await eventually(() => late.aborted).toBe(true);
  expect(early.aborted).toBe(false);
  expect(late.reason).toMatchObject({
    type: 'service_unavailable',
    message: expect.stringContaining('within 1 second.'),
  });
});

test('a deadline that resumed after a pause reports the whole limit', async () => {
  const stop = new Stop();
  setDeadline(stop, 30_000, 20);
  await eventually(() => stop.aborted).toBe(true);
  expect(stop.reason).toMatchObject({ message: expect.stringContaining('within 30 seconds.') });
});

test('work that is shared continues for the others where one of them gives up', async () => {
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
