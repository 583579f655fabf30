import { afterEach, expect, test, vi } from 'vitest';
import { maxWaitForSession, waitForTurnInSession } from '../../../src/desk/agents/chat-attempt.ts';

afterEach(() => vi.restoreAllMocks());

/** Waits until earlier requests have been under way for so many milliseconds, and have then ended. */
async function waitFor(milliseconds: number): Promise<void> {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const underWay = [true, false];
  await waitForTurnInSession(async () => {
    now = milliseconds;
    return underWay.shift() ?? false;
  }, undefined);
}

test('a request waits 5 minutes for earlier ones of its session, and is 503 after that', async () => {
  await waitFor(maxWaitForSession);
  await expect(waitFor(maxWaitForSession + 1)).rejects.toMatchObject({
    status: 503,
    message: 'Earlier requests of the session are still in progress.',
    headers: { 'Retry-After': '5' },
  });
});

test('a request whose client has gone waits no longer', async () => {
  const stop = new AbortController();
  const waiting = waitForTurnInSession(async () => true, stop.signal);
  stop.abort();
  await expect(waiting).rejects.toThrow('aborted');
});
