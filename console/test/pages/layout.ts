import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { readLayoutShift, sidewaysRoom, waitForQuiet } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';
import { goWithin } from '../support/windows.ts';

const windows = [
  { width: 390, height: 844 },
  { width: 1_440, height: 900 },
];
/** The upper bound of a good Cumulative Layout Shift (https://web.dev/articles/cls). */
const maxShift = 0.1;
/** Milliseconds that each answer of the service takes longer, so that the state before it is drawn. */
const delay = 60;

declare global {
  /** Requests of a page whose answer is to come, or was not taken yet. */
  var pendingReads: number;
}

/** Every page as it is loaded at its address. */
export function layoutTests(the: () => ConsoleUnderTest): void {
  test('a reload, the way back and the way forward show what was in sight, however late the content comes', async () => {
    const { server, tenant, open } = the();
    const fields = Array.from({ length: 150 }, (_, index) => `"field${index}":${index}`).join(',');
    await recordLife(server, tenant, { entity: 'tall', entityId: '1' }, [`{${fields}}`]);
    const steps = Array.from({ length: 60 }, (_, index) => `{"step":${index}}`);
    await recordLife(server, tenant, { entity: 'ladder' }, steps);
    const page = await open('history?q=entity%3Aladder', { fresh: true });
    await page.route('**/console/api/**', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      await route.fallback();
    });
    const scrolled = () => page.evaluate(() => Math.round(scrollY));
    // The place is kept where scrolling has paused.
    const scroll = async (to: number) => {
      await page.evaluate((top) => scrollTo({ top, behavior: 'instant' }), to);
      await expect.poll(() => page.evaluate(() => history.state?.scroll)).toBe(to);
    };
    await page.locator('.entry-row').nth(49).waitFor();
    await waitForQuiet(page);
    await scroll(1_200);
    await page.reload();
    await page.locator('.entry-row').nth(49).waitFor();
    await waitForQuiet(page);
    await expect.poll(scrolled).toBe(1_200);
    // A detail beside the list moves nothing.
    await page.locator('.entry-link').nth(30).focus();
    const before = await scrolled();
    await page.keyboard.press('Enter');
    await page.locator('.side-panel .facts').waitFor();
    expect(await scrolled()).toBe(before);
    await page.goBack();
    await expect.poll(scrolled).toBe(before);

    await goWithin(page, 'document?entity=tall&id=1');
    await page.getByText('field40').first().waitFor();
    await waitForQuiet(page);
    await scroll(600);
    await page.reload();
    await page.getByText('field40').first().waitFor();
    await waitForQuiet(page);
    await expect.poll(scrolled).toBe(600);
    await page.getByRole('link', { name: 'Subscriptions' }).click();
    await page.getByRole('heading', { level: 1, name: 'Subscriptions' }).waitFor();
    await expect.poll(scrolled).toBe(0);
    await page.goBack();
    await page.getByText('field40').first().waitFor();
    await expect.poll(scrolled).toBe(600);
    await page.goBack();
    await page.locator('.entry-row').nth(49).waitFor();
    await expect.poll(scrolled).toBe(before);
    await page.goForward();
    await page.getByText('field40').first().waitFor();
    await expect.poll(scrolled).toBe(600);
    // What the reader does is stronger.
    await page.goBack();
    await page.keyboard.press('Home');
    await page.locator('.entry-row').nth(49).waitFor();
    await waitForQuiet(page);
    expect(await scrolled()).toBe(0);
    await page.unrouteAll();
  });

  test('no page moves while it is loaded, each fits its window and has one heading, and the first change is in sight', async () => {
    const addresses = await fillPages(the());
    const faults: string[] = [];
    // At once: most of the time is spent waiting.
    const visits = windows.map(async ({ width, height }) => {
      const page = await the().open('about:blank', { width, height, statuses: [400, 404] });
      await page.addInitScript(slowDown, delay);
      for (const address of addresses) {
        await page.goto(`${the().server.baseUrl}/console/${address}`);
        await settle(page);
        const { sum, causes } = await readLayoutShift(page);
        if (sum >= maxShift) faults.push(`${address} at ${width} px moves by ${sum.toFixed(3)}\n${causes.join('\n')}`);
        const room = await sidewaysRoom(page);
        if (room > 0) faults.push(`${address} is ${room} px wider than ${width} px`);
        const change = await page.evaluate(
          () => document.querySelector('.entry-row')?.getBoundingClientRect().bottom ?? 0,
        );
        if (address.startsWith('history') && change > height)
          faults.push(`the first change of ${address} ends at ${change} of ${height} px`);
        const headings = await page.getByRole('heading', { level: 1 }).count();
        if (headings !== 1) faults.push(`${address} has ${headings} headings of the first level`);
      }
      // The window is not for other tests: its pages would be slow.
      await page.close();
    });
    await Promise.all(visits);
    expect(faults).toEqual([]);
  }, 170_000);
}

/** Makes what the pages show. Returns their addresses below the console. */
async function fillPages(the: ConsoleUnderTest): Promise<readonly string[]> {
  const call = await caller(the);
  const { server, tenant } = the;
  const who = { actorId: 'layout-1', onBehalfOf: { name: 'Acme Ltd' }, correlationId: 'layout' };
  await recordLife(server, tenant, { entity: 'layout', actor: 'Layla', who }, ['{"a":1}', '{"a":2}']);
  const agent = {
    name: { en: 'Stockroom' },
    description: { en: 'Knows the stockroom.' },
    userPrompt: 'Answer.',
    llmConfig: { provider: 'shared' },
    nativeTools: ['change-history'],
  };
  await call('PUT', `/ai-service/${tenant}/agentic/agents/layout`, agent);
  await call('PUT', `/schema/${tenant}/custom-entities/LAYOUT`, { name: { en: 'Layout' } });
  await call('PUT', `/schema/${tenant}/custom-entities/LAYOUT/instances/one`, { size: 1 });
  await call('PUT', `/usage/${tenant}/budgets/layout`, { period: 'month', limitUsd: '10' });
  const made = await call('POST', `/changelog/${tenant}/subscriptions`, {
    name: 'Layout',
    q: 'entity:product',
    target: { type: 'webhook', url: 'https://erp.example.com/' },
  });
  const { id }: { id: string } = JSON.parse(made);
  const product = 'entity=product&id=brisk-go';
  return [
    'overview',
    'history',
    'history?q=entity%3Aorder+type%3Aupdate',
    'history?q=entity%3Aorder+status%3AOPEN',
    'document',
    `document?${product}`,
    `document?${product}&show=fields`,
    `document?${product}&changes=6&with=2`,
    'document?entity=product&id=none',
    'actor?name=Jane+Doe',
    'actor',
    'people',
    'actor?id=layout-1',
    'history?q=entity%3Alayout',
    'subscriptions',
    `subscriptions/one?id=${id}`,
    `subscriptions/edit?id=${id}`,
    'subscriptions/new',
    'connect',
    'desk/agents',
    'desk/agent?id=layout',
    'desk/agent/edit?id=layout',
    'desk/agent/new',
    'desk/chat',
    'desk/chat?agent=layout',
    'desk/sessions',
    'desk/requests',
    'desk/completions',
    'desk/costs',
    'desk/calls',
    'desk/budgets',
    'desk/models',
    'data/types',
    'data/type?type=LAYOUT',
    'data/type/edit?type=LAYOUT',
    'data/type/new',
    'data/configuration',
    'data/jobs',
    `document?${product}&at=2026-01-01T00%3A00%3A00Z&with=now`,
    'security/accesses',
    'security/sessions',
    'security/clients',
    'security/keys',
    'security/proof',
    'no-such-page',
    'data/no-such-page',
  ];
}

/**
 * Delays the answers of the service, and counts those that are to come. The feed never ends. It is done in the page: where a test
 * answers requests, the browser keeps no file, and loads all of them again for each address.
 */
function slowDown(milliseconds: number): void {
  const { fetch } = globalThis;
  globalThis.pendingReads = 0;
  globalThis.fetch = async (input, init) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input, location.href);
    if (pathname.endsWith('/feed')) return await fetch(input, init);
    globalThis.pendingReads += 1;
    try {
      const response = await fetch(input, init);
      await new Promise((resolve) => setTimeout(resolve, milliseconds));
      return response;
    } finally {
      // What the page asks for next comes in the same task.
      setTimeout(() => {
        globalThis.pendingReads -= 1;
      }, milliseconds);
    }
  };
}

/** Waits until a page has what it shows. */
async function settle(page: Page): Promise<void> {
  await page.getByRole('heading').first().waitFor();
  await waitForQuiet(page);
  await page.waitForFunction(() => globalThis.pendingReads === 0, undefined, { polling: 50 });
  await waitForQuiet(page);
}
