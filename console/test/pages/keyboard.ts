import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { checkScrolling } from '../support/accessibility.ts';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { findMotion, findUnaskedAnimations, waitForQuiet } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';
import { goWithin } from '../support/windows.ts';

/** What a person does who has no mouse. */
export function keyboardTests(the: () => ConsoleUnderTest): void {
  test('Tab reaches every control, each one shows that it has the focus, nothing moves with reduced motion, and a table that scrolls on a narrow screen is reached', async () => {
    const { server, tenant, open } = the();
    const call = await caller(the());
    await call('PUT', '/ai-service/demo/agentic/agents/walked', {
      name: { en: 'Walked' },
      llmConfig: { provider: 'shared' },
    });
    await call('POST', '/configuration/demo/configurations', [{ key: 'narrow', value: 'x'.repeat(200) }]);
    await recordLife(server, tenant, { entity: 'walk', actor: 'Walker' }, ['{"a":1}', '{"a":2}']);
    const pages = [
      ['history?q=entity%3Acoupon+type%3Adelete', '.entry-row'],
      ['document?entity=product&id=brisk-go', '.json-tree'],
      ['overview', '.bar-chart canvas'],
      [`actor?${new URLSearchParams({ name: 'Walker' })}`, '.entry-row'],
    ] as const;
    const tables = new Set([pages[0][0], 'AI desk: Models', 'Data: Custom entities', 'Data: Configuration']);
    const page = await open(pages[0][0], { fresh: true });
    const walkAndCheck = async (place: string, part: string) => {
      const { missed, unseen } = await walk(page, part);
      expect(missed, place).toEqual([]);
      expect(unseen, place).toEqual([]);
      // The windows of the tests ask for no motion.
      expect(await findMotion(page), place).toEqual([]);
      expect(await findUnaskedAnimations(page), place).toEqual([]);
      if (!tables.has(place)) return;
      await page.setViewportSize({ width: 380, height: 760 });
      await checkScrolling(page);
      await page.setViewportSize({ width: 1_280, height: 860 });
    };
    for (const [address, ready] of pages) {
      const isFirst = address === pages[0][0];
      if (!isFirst) await goWithin(page, address);
      await page.locator(ready).first().waitFor();
      await waitForQuiet(page);
      // The frame of a page is the same everywhere.
      await walkAndCheck(address, isFirst ? 'body' : 'main');
    }
    // The tabs of a page one after the other, each reached from the one before by the keyboard.
    const list = 'tbody, .empty-state';
    const tabs = [
      [
        'AI desk',
        {
          Agents: list,
          Chat: 'option:nth-child(2)',
          Sessions: list,
          Requests: list,
          Playground: '.quota-bar',
          Costs: list,
          Calls: list,
          Budgets: list,
          Models: 'table',
        },
      ],
      ['Data', { 'Custom entities': list, Configuration: list, Jobs: list }],
    ] as const;
    for (const [title, labels] of tabs) {
      await page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: title, exact: true }).click();
      for (const [label, ready] of Object.entries(labels)) {
        const tab = page.getByRole('navigation', { name: title }).getByRole('link', { name: label, exact: true });
        await tab.focus();
        await page.keyboard.press('Enter');
        await page.getByRole('main').getByRole('heading', { name: label, level: 1 }).waitFor();
        await page.locator(ready).first().waitFor({ state: 'attached' });
        await walkAndCheck(`${title}: ${label}`, '.tabs ~ *');
      }
    }
  });

  test('a panel and a dialog give the focus back to what opened them', async () => {
    const page = await the().open('history?q=entity%3Acoupon+type%3Adelete');
    const row = page.locator('.entry-link').nth(1);
    await row.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('complementary').getByText('Who').waitFor();
    await page.getByRole('complementary').getByRole('button', { name: 'Close' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('complementary').count()).toBe(0);
    await expect.poll(() => row.evaluate((element) => element === document.activeElement)).toBe(true);

    const opener = page.getByRole('button', { name: 'Export', exact: true });
    await opener.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    for (let step = 0; step < 12; step += 1) {
      await page.keyboard.press('Tab');
      // Behind the dialog nothing has the focus; the browser's own bar may have it, which is the body for the page.
      const isOutside = await page.evaluate(
        () => document.activeElement !== document.body && document.activeElement?.closest('dialog') === null,
      );
      expect(isOutside).toBe(false);
    }
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    await expect.poll(() => opener.evaluate((element) => element === document.activeElement)).toBe(true);
  });
}

/**
 * Presses Tab through the whole page, or through what follows within a part of it. Returns the controls that it never reached, and those
 * whose focus is invisible.
 */
async function walk(page: Page, part: string): Promise<{ missed: string[]; unseen: string[] }> {
  if (part === 'main') await page.locator(part).focus();
  await page.evaluate((of) => {
    const isControl = (element: HTMLElement) =>
      element.matches('a[href], button, input, select, textarea, summary, [tabindex]') &&
      !element.matches(':disabled, [tabindex="-1"]') &&
      element.checkVisibility();
    const places = [...document.querySelectorAll(of)];
    const controls = places.flatMap((place) => [...place.querySelectorAll<HTMLElement>('*')]).filter(isControl);
    const walked = { left: new Set(controls), unseen: [] as string[] };
    globalThis.focusWalk = walked;
    document.addEventListener('focusin', ({ target }) => {
      if (!(target instanceof HTMLElement) || !walked.left.delete(target)) return;
      // The field of the query shows it by its frame.
      const { outlineStyle, outlineWidth } = getComputedStyle(target.closest('.query-field') ?? target);
      if (outlineStyle === 'none' || Number.parseFloat(outlineWidth) < 1)
        walked.unseen.push(target.outerHTML.slice(0, 120));
    });
  }, part);
  const left = () => page.evaluate(() => globalThis.focusWalk?.left.size ?? 0);
  const count = await left();
  if (part === 'body') expect(count).toBeGreaterThan(10);
  for (let step = 0; step < count + 10; step += 1) {
    if (step >= count && (await left()) === 0) break;
    await page.keyboard.press('Tab');
  }
  return await page.evaluate(() => ({
    missed: [...(globalThis.focusWalk?.left ?? [])].map(({ outerHTML }) => outerHTML.slice(0, 120)),
    unseen: globalThis.focusWalk?.unseen ?? [],
  }));
}

declare global {
  var focusWalk: { readonly left: Set<HTMLElement>; readonly unseen: string[] } | undefined;
}
