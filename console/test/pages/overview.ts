import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';

/** What a person sees first. */
export function overviewTests(the: () => ConsoleUnderTest): void {
  test('the first page tells what happened, and each figure leads to what it counts', async () => {
    const { vendor, open, checkAccessibility } = the();
    const call = await caller(the());
    const llmConfig = { provider: 'anthropic', model: 'm', apiKey: 'sk-old' };
    await call('PUT', '/ai-service/demo/agentic/agents/troubled', { name: { en: 'Troubled' }, llmConfig });
    vendor.behave({ kind: 'status', status: 401 });
    await call('POST', '/ai-service/demo/agentic/chat', { agentId: 'troubled', message: 'Hello' }, 400);
    vendor.behave({ kind: 'answer' });
    const page = await open('', { height: 1_100, fresh: true });
    const month = page.getByRole('region', { name: 'Last 30 days' });
    await month.locator('.figure').waitFor();
    await month.locator('canvas').waitFor();
    // The first Tab leads to the link that skips the navigation.
    await page.keyboard.press('Tab');
    const skip = page.getByRole('link', { name: 'Skip to the page' });
    await expect.poll(() => skip.evaluate((element) => element === document.activeElement)).toBe(true);
    // It is outside of the window until it has the focus.
    await expect.poll(async () => (await skip.boundingBox())?.y).toBeGreaterThanOrEqual(0);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await expect.poll(() => page.evaluate(() => document.activeElement?.closest('main') !== null)).toBe(true);
    const numberOf = (text: string) => Number(text.replace(/[^\d]/g, ''));
    const total = numberOf((await month.locator('.figure').textContent()) ?? '');
    const sumOf = async (figures: Locator) =>
      (await figures.allInnerTexts()).map(numberOf).reduce((sum, count) => sum + count, 0);
    await expect.poll(() => sumOf(month.locator('.changes-type .number'))).toBe(total);
    const entities = page.getByRole('region', { name: 'Busiest entities' });
    await entities.getByRole('link', { name: 'order' }).waitFor();
    await expect.poll(() => sumOf(entities.locator('.number'))).toBe(total);
    const actor = page.getByRole('region', { name: 'Busiest actors' }).getByRole('link').first();
    await expect.poll(() => actor.getAttribute('href')).toMatch(/actor\?name=/);
    const ways = page.getByRole('region', { name: 'How changes come in' });
    await ways.getByText('annals import').waitFor();
    await ways.getByText('Documents that live in Annals').waitFor();
    const trouble = page.getByRole('region', { name: 'Agents with trouble' });
    await trouble.getByRole('link', { name: 'Troubled troubled' }).waitFor();
    await trouble.getByRole('link', { name: '1 failed request' }).first().waitFor();
    await page.getByRole('region', { name: 'Quota of the shared token' }).getByText('Input tokens').waitFor();
    const usage = page.getByRole('region', { name: 'Usage' });
    await usage.locator('canvas').waitFor();
    await usage.getByRole('button', { name: 'Tokens' }).click();
    await usage.getByRole('application', { name: 'Usage by day: tokens' }).waitFor();
    await checkAccessibility(page);
    // By the keyboard: the first day, and what happened on it.
    await month.getByRole('application').focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await expect
      .poll(() => new URL(page.url()).searchParams.get('q'))
      .toMatch(/^occurredAt:\(>="\d{4}-\d\d-\d\dT00:00:00\+0[12]:00" AND <"\d{4}-\d\d-\d\dT00:00:00\+0[12]:00"\)$/);
  });

  test('a session without the history sees what is left, on a phone too', async () => {
    const { open } = the();
    const page = await open('', { scope: 'ai.completion_manage ai.agent_read', width: 380, height: 800 });
    await page.getByRole('region', { name: 'Quota of the shared token' }).getByText('Input tokens').waitFor();
    const titles = page.getByRole('main').getByRole('heading', { level: 2 });
    await expect.poll(() => titles.allInnerTexts()).toEqual(['Agents with trouble', 'Quota of the shared token']);
    expect(await sidewaysRoom(page)).toBe(0);
  });
}
