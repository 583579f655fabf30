import type { Browser, BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';
import { readRestriction } from '../../../src/history/ask/restriction.ts';
import type { TestServer } from '../../../test/support/server/server.ts';

export interface OpenOptions {
  /** Pixels; left out: 1280 by 860. */
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: 'light' | 'dark';
  /** Of the client that is signed in; left out: all. */
  readonly scope?: string;
  /** The part of the history that the client sees, with the scope to read it alone; left out: all. */
  readonly query?: string;
  /** Statuses that the test provokes: the browser logs each as an error. */
  readonly statuses?: readonly number[];
  /** Left out: somebody is signed in. */
  readonly signedOut?: boolean;
  /** For a test that changes the clock or the session of its window, which no other test may have then. */
  readonly unshared?: boolean;
  /** Where the service is reached; left out: where it listens. */
  readonly baseUrl?: string;
  /** Other places that the pages lead to. */
  readonly others?: readonly string[];
}

/** The windows of one browser. A test takes those that earlier tests have left: to start one takes longer than to load a page. */
export interface Windows {
  open(address: string, options?: OpenOptions): Promise<Page>;
  /** Ends a test. Fails where the browser logged an error, or a page called another place. */
  leave(): Promise<void>;
}

interface Shared {
  readonly context: BrowserContext;
  readonly free: Page[];
}

type SignedInAs = Pick<OpenOptions, 'scope' | 'query'>;
type SignedIn = Awaited<ReturnType<BrowserContext['storageState']>>;

export function createWindows(browser: Browser, server: TestServer, tenant: string): Windows {
  /** By the rights of who is signed in. */
  const shared = new Map<string, Promise<Shared>>();
  const unshared: BrowserContext[] = [];
  const taken: { page: Page; from: Shared }[] = [];
  const problems: string[] = [];
  /** What the pages of the running test may do. */
  const allowed = { places: [server.baseUrl], statuses: new Set<number>() };

  async function newContext(storageState?: SignedIn): Promise<BrowserContext> {
    const context = await browser.newContext({
      // Nothing that moves: a test waits for what is there.
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
      ...(storageState === undefined ? {} : { storageState }),
    });
    context.setDefaultTimeout(30_000);
    context.on('request', (request) => {
      if (!allowed.places.some((place) => request.url().startsWith(`${place}/`)))
        problems.push(`a request to ${request.url()}`);
    });
    context.on('weberror', (error) => problems.push(`an error of the page: ${error.error().stack}`));
    context.on('console', (message) => {
      const text = message.text();
      const isProvoked = [...allowed.statuses].some((status) => text.includes(`status of ${status}`));
      if (['error', 'warning'].includes(message.type()) && !isProvoked) problems.push(`${message.type()}: ${text}`);
    });
    return context;
  }

  async function sharedContext(as: SignedInAs): Promise<Shared> {
    const key = JSON.stringify([as.scope, as.query]);
    const known =
      shared.get(key) ??
      signIn(browser, server, tenant, as).then(async (state) => ({ context: await newContext(state), free: [] }));
    shared.set(key, known);
    return await known;
  }

  async function takePage({ signedOut = false, unshared: alone = signedOut, ...as }: OpenOptions): Promise<Page> {
    if (alone) {
      const context = await newContext(signedOut ? undefined : await signIn(browser, server, tenant, as));
      unshared.push(context);
      return await context.newPage();
    }
    const from = await sharedContext(as);
    const page = from.free.pop() ?? (await from.context.newPage());
    taken.push({ page, from });
    return page;
  }

  return {
    async open(address, options = {}) {
      const {
        width = 1280,
        height = 860,
        colorScheme = 'light',
        statuses = [],
        baseUrl = server.baseUrl,
        others = [],
      } = options;
      const page = await takePage(options);
      allowed.places.push(baseUrl, ...others);
      for (const status of statuses) allowed.statuses.add(status);
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      await page.goto(`${baseUrl}/console/${address}`);
      return page;
    },
    async leave() {
      await Promise.all([
        ...unshared.splice(0).map((context) => context.close()),
        ...taken.splice(0).map(async ({ page, from }) => {
          await page.evaluate(() => localStorage.clear());
          await page.goto('about:blank');
          from.free.push(page);
        }),
      ]);
      allowed.places = [server.baseUrl];
      allowed.statuses.clear();
      expect(problems.splice(0)).toEqual([]);
    },
  };
}

async function signIn(
  browser: Browser,
  server: TestServer,
  tenant: string,
  { scope, query }: SignedInAs,
): Promise<SignedIn> {
  const { clientId, clientSecret } = await server.createClient(tenant, {
    name: 'Robin Reader',
    ...(scope === undefined ? {} : { scope }),
    ...(query === undefined
      ? {}
      : { scope: 'changelog.changelog_read', restriction: readRestriction([{ query, hide: ['price'] }]) }),
  });
  const context = await browser.newContext();
  const response = await context.request.post(`${server.baseUrl}/console/api/session`, {
    headers: { origin: server.baseUrl },
    data: { clientId, clientSecret },
  });
  expect(response.status()).toBe(200);
  const state = await context.storageState();
  await context.close();
  return state;
}
