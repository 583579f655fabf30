import { expect, test } from 'vitest';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom, waitForQuiet } from '../support/page-measures.ts';

const agents = '/ai-service/demo/agentic/agents';
const usage = { input: 412, output: 96 };

/** What a person sees of costs, and does with budgets. */
export function costTests(the: () => ConsoleUnderTest): void {
  test('what calls cost is shown over time and by model, client, agent and user, and each call in a list', async () => {
    const { vendor, open, checkAccessibility } = the();
    const call = await caller(the());
    await call('PUT', `${agents}/prices`, { name: { en: 'Prices' }, llmConfig: { provider: 'shared' } });
    vendor.behave({ kind: 'answer', usage });
    await call('POST', '/ai-service/demo/agentic/chat', { agentId: 'prices', message: 'Hello' });
    vendor.behave({ kind: 'answer' });
    const page = await open('desk/costs', { width: 380, height: 800 });
    await page.locator('tbody').getByText('gpt-5.4-mini').waitFor();
    await page.locator('.bar-chart canvas').waitFor();
    await waitForQuiet(page);
    const chart = page.getByRole('application', { name: 'Costs over time by model, in US dollars' });
    await chart.focus();
    await page.keyboard.press('ArrowLeft');
    await expect
      .poll(() => page.locator('.bar-chart-readout').textContent())
      .toMatch(/\$0\.\d+ · gpt-5\.4-mini \$0\.\d+$/);
    await page.getByLabel('By', { exact: true }).selectOption('agent');
    await page.locator('tbody').getByText('Prices').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    await page.getByRole('link', { name: 'Calls', exact: true }).click();
    await page.getByRole('button', { name: 'Chats' }).click();
    await page
      .getByRole('row', { name: /Prices 412 in, 96 out \$0\.\d+/ })
      .first()
      .waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    // The sums are of all rows, or say that they are not.
    const sums = page.locator('tfoot tr');
    const cells = await page.locator('tbody .amount').allTextContents();
    const tokens = cells.map((text) => Number(/^([\d,]+) in, /.exec(text)?.[1]?.replaceAll(',', '') ?? 0));
    const total = tokens.reduce((sum, count) => sum + count, 0).toLocaleString('en');
    await expect.poll(() => sums.textContent()).toMatch(new RegExp(`^Total(?:at least )?${total} in, `));
    await page.route(/\/calls\?/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, headers: { ...response.headers(), 'x-next-cursor': 'more' } });
    });
    await page.getByRole('button', { name: 'Refresh' }).click();
    await expect.poll(() => sums.textContent()).toMatch(/^Total of this page/);
    await page.unroute(/\/calls\?/);
    await page.setViewportSize({ width: 1280, height: 800 });
    const hidden = page.getByLabel('Table of calls').evaluate((table) => table.scrollWidth - table.clientWidth);
    expect(await hidden).toBe(0);
  });

  test('a budget is made in a dialog that tells faults, shows what is used of it, is changed and deleted', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('desk/budgets', { width: 380, height: 800 });
    await page.getByText('There is no budget yet').waitFor();
    await page.getByRole('button', { name: 'New budget' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Id').fill('whole');
    await dialog.getByLabel('Name', { exact: true }).fill('All of us');
    await dialog.getByLabel('Limit').fill('fifty');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('US dollars, such as 50 or 0.25.').waitFor();
    await checkAccessibility(page, 'dialog');
    await dialog.getByLabel('Limit').fill('50');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('of $50.00').waitFor();
    await page.getByRole('button', { name: 'Edit All of us' }).click();
    await expect.poll(() => dialog.getByLabel('Name', { exact: true }).inputValue()).toBe('All of us');
    await dialog.getByLabel('Unit').selectOption('tokens');
    await dialog.getByLabel('Limit').fill('2000000');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('of 2,000,000').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    // Of each user, whom it names with what they used.
    await page.getByRole('button', { name: 'New budget' }).first().click();
    await dialog.getByLabel('Id').fill('each');
    await dialog.getByLabel('What counts').selectOption('user');
    await dialog.getByLabel('Limit').fill('1');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('Name the user.').waitFor();
    await dialog.getByLabel('What counts').selectOption('each user');
    await dialog.getByText('Keys of a user are limited.').waitFor();
    await checkAccessibility(page, 'dialog');
    await dialog.getByRole('button', { name: 'Save' }).click();
    const each = page.getByRole('row', { name: /each Each user/ });
    await each.waitFor();
    await each.getByRole('button', { name: 'Edit each' }).click();
    await expect.poll(() => dialog.getByLabel('What counts').inputValue()).toBe('each user');
    await page.keyboard.press('Escape');
    const { vendor } = the();
    vendor.behave({ kind: 'answer', usage });
    const call = await caller(the());
    for (const user of ['ann', 'bob', 'cy', 'dee'])
      await call('POST', '/openai/demo/v1/chat/completions', {
        model: 'gpt-5.4-mini',
        messages: [{ role: 'user', content: 'Hello' }],
        max_tokens: 200,
        user,
      });
    vendor.behave({ kind: 'answer' });
    await page.reload();
    await each.getByText('ann', { exact: true }).waitFor();
    expect(await each.getByRole('progressbar').count()).toBe(3);
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    await each.getByRole('link', { name: 'Costs of more users' }).click();
    await page.getByRole('link', { name: 'Set a budget for bob' }).click();
    await expect.poll(() => dialog.getByLabel('Which user').inputValue()).toBe('bob');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Delete each' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await each.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Delete All of us' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There is no budget yet').waitFor();
  });
}
