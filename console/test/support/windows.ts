import type { Browser, BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { ShownActors } from '../../../src/core/written-restriction.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import type { TestServer } from '../../../test/support/server/server.ts';

export interface OpenOptions {
  /** Pixels; left out: 1280 by 860. */
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: 'light' | 'dark';
  /** Of the client that is signed in; left out: all. */
  readonly scope?: string;
  /** Whose history it is; left out: that of the shop. */
  readonly tenant?: string;
  /** The part of the history that the client sees, with the scope to read it alone; left out: all. */
  readonly query?: string;
  /** What a client with a `query` sees of who made changes; left out: names. */
  readonly actors?: ShownActors;
  /** Statuses that the test provokes: the browser logs each as an error. */
  readonly statuses?: readonly number[];
  /** Whether requests may fail to reach the service. */
  readonly losesService?: boolean;
  /** Left out: a session is signed in. */
  readonly signedOut?: boolean;
  /** For what the console reads when it is loaded; left out: a window that shows it already goes to the address within it. */
  readonly fresh?: boolean;
  /** Where the service is reached; left out: where it listens. */
  readonly baseUrl?: string;
  /** Other places that the pages lead to. */
  readonly others?: readonly string[];
}

/** The windows of one browser. A test takes those that earlier tests have left: to start one takes longer than most tests. */
export interface Windows {
  open(address: string, options?: OpenOptions): Promise<Page>;
  /** Ends a test. Fails where the browser logged an error, or a page called another place. */
  leave(): Promise<void>;
}

type SignedInAs = Pick<OpenOptions, 'scope' | 'tenant' | 'query' | 'actors'>;
type Cookies = Awaited<ReturnType<BrowserContext['cookies']>>;

/** A window with cookies of its own. */
interface Window {
  readonly context: BrowserContext;
  readonly page: Page;
  /** The rights of who is signed in where the console is loaded and as new. */
  shows?: string | undefined;
}

export function createWindows(browser: Browser, server: TestServer, shop: string): Windows {
  const free: Window[] = [];
  const taken: Window[] = [];
  /** By the rights of who is signed in. */
  const sessions = new Map<string, Cookies>();
  const problems: string[] = [];
  /** What the pages of the running test may do. */
  const allowed = { places: [server.baseUrl], statuses: new Set<number>(), losses: false };

  async function startWindow(): Promise<Window> {
    const context = await browser.newContext({
      // Nothing that moves: a test waits for what is there.
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
    });
    // A busy machine pauses for long.
    context.setDefaultTimeout(60_000);
    context.on('request', (request) => {
      if (!allowed.places.some((place) => request.url().startsWith(`${place}/`)))
        problems.push(`a request to ${request.url()}`);
    });
    context.on('weberror', (error) => problems.push(`an error of the page: ${error.error().stack}`));
    context.on('console', (message) => {
      const text = message.text();
      const isProvoked =
        [...allowed.statuses].some((status) => text.includes(`status of ${status}`)) ||
        (allowed.losses && text.includes('net::ERR_'));
      if (['error', 'warning'].includes(message.type()) && !isProvoked) problems.push(`${message.type()}: ${text}`);
    });
    return { context, page: await context.newPage() };
  }

  /** One with these rights, or else one with other rights than most tests need. */
  async function takeWindow(rights: string): Promise<Window> {
    const found =
      free.find(({ shows }) => shows === rights) ?? free.find(({ shows }) => shows !== withAllRights) ?? free[0];
    if (found === undefined) return await startWindow();
    free.splice(free.indexOf(found), 1);
    return found;
  }

  async function signInto({ context }: Window, as: SignedInAs): Promise<void> {
    await context.clearCookies();
    const known = sessions.get(rightsOf(as));
    if (known !== undefined) return await context.addCookies(known);
    await signIn(context, server, { tenant: shop, ...as });
    sessions.set(rightsOf(as), await context.cookies());
  }

  async function leaveWindow(window: Window): Promise<void> {
    const { context, page } = window;
    if (page.isClosed()) return await context.close();
    if (window.shows !== undefined && (await isAsNew(page))) {
      await goWithin(page, 'no-such-page');
    } else {
      window.shows = undefined;
      await page.evaluate(() => localStorage.clear());
      await page.goto('about:blank');
    }
    free.push(window);
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
        signedOut = false,
        losesService = false,
        fresh = signedOut || !isWithin(address),
      } = options;
      const rights = rightsOf(options);
      const window = await takeWindow(signedOut ? '' : rights);
      const { context, page } = window;
      taken.push(window);
      allowed.places.push(baseUrl, ...others);
      for (const status of statuses) allowed.statuses.add(status);
      if (losesService) allowed.losses = true;
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      if (window.shows === rights && !fresh) {
        await goWithin(page, address);
        return page;
      }
      if (signedOut) await context.clearCookies();
      else if (window.shows !== rights) await signInto(window, options);
      await page.goto(`${baseUrl}/console/${address}`);
      const isElsewhere = baseUrl !== server.baseUrl;
      window.shows = signedOut || isElsewhere || !isWithin(address) ? undefined : rights;
      return page;
    },
    async leave() {
      await Promise.all(taken.splice(0).map(leaveWindow));
      allowed.places = [server.baseUrl];
      allowed.statuses.clear();
      allowed.losses = false;
      expect(problems.splice(0)).toEqual([]);
    },
  };
}

function rightsOf({ scope, tenant, query, actors }: SignedInAs): string {
  return JSON.stringify([scope, tenant, query, actors]);
}

const withAllRights = rightsOf({});

/** Whether an address is one of the console. */
function isWithin(address: string): boolean {
  return !/^(?:\.\.|about:)/.test(address);
}

/** Goes to an address of the console as one of its links does. */
export async function goWithin(page: Page, address: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, '', new URL(to, document.baseURI));
    dispatchEvent(new PopStateEvent('popstate'));
  }, address);
}

/** Closes messages. Returns whether the console has nothing else that the next test could take for its own. */
async function isAsNew(page: Page): Promise<boolean> {
  return await page.evaluate(() => {
    for (const close of document.querySelectorAll<HTMLElement>('.toast button')) close.click();
    return (
      localStorage.length === 0 &&
      document.querySelector('.shell') !== null &&
      document.querySelector('.sidebar.open, dialog') === null
    );
  });
}

async function signIn(
  context: BrowserContext,
  server: TestServer,
  { tenant, scope, query, actors = true }: SignedInAs & { readonly tenant: string },
): Promise<void> {
  const { clientId, clientSecret } = await server.createClient(tenant, {
    name: 'Robin Reader',
    ...(scope === undefined ? {} : { scope }),
    ...(query === undefined
      ? {}
      : { scope: 'changelog.changelog_read', restriction: readRestriction([{ query, hide: ['price'], actors }]) }),
  });
  const response = await context.request.post(`${server.baseUrl}/console/api/session`, {
    headers: { origin: server.baseUrl },
    data: { clientId, clientSecret },
  });
  expect(response.status()).toBe(200);
}
