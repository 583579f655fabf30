import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';
import { storeDocuments } from '../../../src/custom-entities/store-documents.ts';
import { inTransaction } from '../../../src/db/transaction.ts';
import { claimsAfter, claimType } from '../../../src/demo/claims-as-instances.ts';
import { generateShopHistory } from '../../../src/demo/generate-shop-history.ts';
import { recordShopHistory } from '../../../src/demo/record-shop-history.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { startTestServer, type TestServer } from '../../../test/support/server/server.ts';
import { startVendor, type Vendor } from '../../../test/support/vendor/vendor-server.ts';
import { buildConsole } from './build-console.ts';
import { startChromium } from './chromium.ts';

export interface OpenOptions {
  /** Pixels; left out: 1280 by 860. */
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: 'light' | 'dark';
  /** Of the client that is signed in; left out: all. */
  readonly scope?: string;
  /** Statuses that the test provokes: the browser logs each as an error. */
  readonly statuses?: readonly number[];
  /** Left out: somebody is signed in. */
  readonly signedOut?: boolean;
  /** Where the service is reached; left out: where it listens. */
  readonly baseUrl?: string;
}

/** The page as it was built, on a service with the demo's shop, in one browser. */
export interface ConsoleUnderTest {
  readonly server: TestServer;
  /** All providers of language models; the shared token is that of OpenAI's. */
  readonly vendor: Vendor;
  /** The tenant with the shop. */
  readonly tenant: string;
  /** Opens an address below `/console/`, such as `history?q=type:create`, in a window of its own. */
  open(address: string, options?: OpenOptions): Promise<Page>;
  /** Fails where axe finds something, light and dark, in the whole page or in the part that a selector names. */
  checkAccessibility(page: Page, part?: string): Promise<void>;
  /** Closes the windows of a test. Fails where the browser logged an error, or a page called another place. */
  closePages(): Promise<void>;
  end(): Promise<void>;
}

const tenant = 'demo';

export async function startConsole(): Promise<ConsoleUnderTest> {
  const vendor = await startVendor();
  const [server, browser, axe] = await Promise.all([startService(vendor), startChromium(), axeSource()]);
  const states = new Map<string, Promise<SignedIn>>();
  const contexts: BrowserContext[] = [];
  const problems: string[] = [];

  async function signedIn(scope: string | undefined): Promise<SignedIn> {
    const known = states.get(scope ?? '') ?? signIn(browser, server, scope);
    states.set(scope ?? '', known);
    return await known;
  }

  return {
    server,
    vendor,
    tenant,
    async open(
      address,
      {
        width = 1280,
        height = 860,
        colorScheme = 'light',
        scope,
        statuses = [],
        signedOut = false,
        baseUrl = server.baseUrl,
      } = {},
    ) {
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme,
        // Nothing that moves: a test waits for what is there.
        reducedMotion: 'reduce',
        locale: 'en-GB',
        timezoneId: 'Europe/Berlin',
        ...(signedOut ? {} : { storageState: await signedIn(scope) }),
      });
      contexts.push(context);
      watch(context, baseUrl, statuses, problems);
      const page = await context.newPage();
      page.setDefaultTimeout(30_000);
      await page.goto(`${baseUrl}/console/${address}`);
      return page;
    },
    async checkAccessibility(page, part = 'html') {
      // The policy forbids a script that is added; the browser's own tools run one all the same.
      await page.evaluate(axe);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        // In the dark only the colours are others.
        const rules = colorScheme === 'light' ? {} : { runOnly: ['color-contrast'] };
        const { violations } = await page.evaluate(
          ([place, options]): Promise<AxeResults> => globalThis.axe.run(place, options),
          [part, rules] as const,
        );
        const found = violations.map(
          ({ id, nodes }) =>
            `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
        );
        expect(found, colorScheme).toEqual([]);
      }
      await page.emulateMedia({ colorScheme: null });
    },
    async closePages() {
      await Promise.all(contexts.splice(0).map((context) => context.close()));
      expect(problems.splice(0)).toEqual([]);
    },
    async end() {
      await browser.close();
      await server.close();
      await vendor.close();
    },
  };
}

declare global {
  var axe: { run(part: string, options: RunOptions): Promise<AxeResults> };
}

type SignedIn = Awaited<ReturnType<BrowserContext['storageState']>>;

async function startService(vendor: Vendor): Promise<TestServer> {
  const server = await startTestServer({
    consoleFolder: await buildConsole(),
    environment: {
      OPENAI_BASE_URL: vendor.baseUrl,
      ANTHROPIC_BASE_URL: vendor.baseUrl,
      ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
    },
  });
  const { db } = server.context;
  await server.createTenant(tenant);
  const now = Date.now();
  const shop = { seed: 1, now };
  const instances = claimsAfter(generateShopHistory(shop));
  await inTransaction(db, (transaction) => storeDocuments(transaction, tenant, { type: claimType, instances, now }));
  await recordShopHistory(
    createRecorder(db, tenant, () => now),
    shop,
  );
  return server;
}

async function signIn(browser: Browser, server: TestServer, scope: string | undefined): Promise<SignedIn> {
  const { clientId, clientSecret } = await server.createClient(tenant, {
    name: 'Robin Reader',
    ...(scope === undefined ? {} : { scope }),
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

function watch(context: BrowserContext, baseUrl: string, statuses: readonly number[], problems: string[]): void {
  context.on('request', (request) => {
    if (!request.url().startsWith(`${baseUrl}/`)) problems.push(`a request to ${request.url()}`);
  });
  context.on('weberror', (error) => problems.push(`an error of the page: ${error.error().stack}`));
  context.on('console', (message) => {
    const text = message.text();
    const isProvoked = statuses.some((status) => text.includes(`status of ${status}`));
    if (['error', 'warning'].includes(message.type()) && !isProvoked) problems.push(`${message.type()}: ${text}`);
  });
}

async function axeSource(): Promise<string> {
  return await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
}
