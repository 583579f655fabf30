import { afterEach, expect, test, vi } from 'vitest';
import type { ViewerToken } from '../src/history-element.ts';
import { createReads } from '../src/reads/viewer-reads.ts';

const { signal } = new AbortController();

/** Reads of a page that is seen. Its service answers nothing. */
function readsOfPage(getToken: () => Promise<ViewerToken>) {
  vi.useFakeTimers();
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

test('a page that hands over what is left of a token is asked once a second at most', async () => {
  const getToken = vi.fn(async () => ({ token: 'annals_view_a', expiresIn: 0.01 }));
  readsOfPage(getToken);
  await vi.advanceTimersByTimeAsync(10_500);
  expect(getToken).toHaveBeenCalledTimes(11);
});
