import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { defaultTimes } from '../../src/desk/completions/service.ts';
import { startDeadline } from '../../src/providers/deadline.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});

afterEach(() => vi.useRealTimers());

test('a provider may be silent for 60 s and not longer', () => {
  const deadline = startDeadline(defaultTimes.provider, undefined);
  vi.advanceTimersByTime(30_000);
  deadline.heard();
  vi.advanceTimersByTime(59_999);
  expect(deadline.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(deadline.reason()).toBe('timeout');
});

test('a call takes 10 minutes in all and not longer, however much the provider says', () => {
  const deadline = startDeadline(defaultTimes.provider, undefined);
  for (let half = 1; half <= 20; half += 1) {
    vi.advanceTimersByTime(half === 20 ? 29_999 : 30_000);
    expect(deadline.signal.aborted).toBe(false);
    deadline.heard();
  }
  vi.advanceTimersByTime(1);
  expect(deadline.reason()).toBe('timeout');
});
