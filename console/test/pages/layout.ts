import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { readLayoutShift, sidewaysRoom, waitForQuiet } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';

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
  test('no page moves while it is loaded, each fits its window and has one heading, and the first change is in sight', async () => {
    const addresses = await fillPages(the());
    const faults: string[] = [];
    for (const { width, height } of windows) {
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
    }
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
    'security/accesses',
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
