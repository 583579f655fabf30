import { afterEach, expect, test, vi } from 'vitest';
import type { ViewerToken } from '../src/history-element.ts';
import { createReads } from '../src/reads/viewer-reads.ts';

const { signal } = new AbortController();

/** Reads of a page that is seen. Its service answers nothing. */
function readsOfPage(getToken: () => Promise<ViewerToken>) {
  // These alone: files of one run share their modules, and what another one left at work must get its turns of the
  // event loop.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  vi.stubGlobal('document', { visibilityState: 'visible' });
  vi.stubGlobal('fetch', () => new Promise(() => {}));
  const reads = createReads({ baseUrl: 'https://annals.example', tenant: 'acme', getToken });
  reads.values('entity', '', signal).catch(() => {});
  return reads;
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test('a token that comes after the history was taken from the page is renewed by nobody', async () => {
  const { promise, resolve } = Promise.withResolvers<ViewerToken>();
  const getToken = vi.fn(() => promise);
  const reads = readsOfPage(getToken);
  await vi.advanceTimersByTimeAsync(0);
  reads.end();
  resolve({ token: 'annals_view_a', expiresIn: 600 });
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(getToken).toHaveBeenCalledOnce();
});

test('a file that is fetched when the history is taken from the page is fetched no further', async () => {
  const reads = readsOfPage(async () => ({ token: 'annals_view_a', expiresIn: 600 }));
  const fetched = vi.fn(async (_input: unknown, { signal: whole }: RequestInit) => {
    const { promise, reject } = Promise.withResolvers<never>();
    whole?.addEventListener('abort', () => reject(whole.reason));
    return await promise;
  });
  vi.stubGlobal('fetch', fetched);
  const file = reads.csv('entity:*');
  const ended = expect(file).rejects.toThrow();
  await vi.advanceTimersByTimeAsync(0);
  const asked = fetched.mock.lastCall?.[1].signal;
  expect(asked?.aborted).toBe(false);
  reads.end();
  expect(asked?.aborted).toBe(true);
  await ended;
});

test('a page that hands over what is left of a token is asked once a second at most', async () => {
  const getToken = vi.fn(async () => ({ token: 'annals_view_a', expiresIn: 0.01 }));
  readsOfPage(getToken);
  await vi.advanceTimersByTimeAsync(10_500);
  expect(getToken).toHaveBeenCalledTimes(11);
});
