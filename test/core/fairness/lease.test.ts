import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { keepLease } from '../../../src/core/repeat.ts';

// These alone: files of one run share their modules, and what another one left at work must get its turns of the event
// loop.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

test('a lease is extended at every heartbeat, until it is ended', async () => {
  const extend = vi.fn(async () => {});
  const end = keepLease(extend, { heartbeat: 100, onError: () => {} });
  await vi.advanceTimersByTimeAsync(350);
  expect(extend).toHaveBeenCalledTimes(3);
  end();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(extend).toHaveBeenCalledTimes(3);
});

test('a failure is reported, and the next heartbeat extends again', async () => {
  const onError = vi.fn();
  const extend = vi.fn(() => Promise.reject(new Error('the database is away')));
  const end = keepLease(extend, { heartbeat: 100, onError });
  await vi.advanceTimersByTimeAsync(250);
  expect(extend).toHaveBeenCalledTimes(2);
  expect(onError).toHaveBeenCalledTimes(2);
  end();
});

test('while one extension is under way, no second one begins', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const extend = vi.fn(() => promise);
  const end = keepLease(extend, { heartbeat: 100, onError: () => {} });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(extend).toHaveBeenCalledTimes(1);
  resolve();
  await vi.advanceTimersByTimeAsync(100);
  expect(extend).toHaveBeenCalledTimes(2);
  end();
});
