import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { totalOf } from '../support/history-page.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';

const anyTime = 'occurredAt:>="1970-01-01T00:00:00Z"';

/** Who exactly made a change, for whom, and what belongs together. */
export function whoTests(the: () => ConsoleUnderTest): void {
  test('a change says who, for whom, from where and with how many others, and each of it leads to its changes', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const who = { actorId: 'u-17', onBehalfOf: { name: 'Acme Ltd', id: 'c-1' }, correlationId: 'who, "1"' };
    const life = { entity: 'who-line', actor: 'Jane Doe', context: '{"ip":"203.0.113.7"}', who };
    await recordLife(server, tenant, life, ['{"a":1}', '{"a":2}']);
    // Long before the 30 days, and on another page of the list.
    const from = Date.now() - 100 * 86_400_000;
    await recordLife(server, tenant, { ...life, entity: 'who-other', from }, ['{"a":1}']);

    const page = await open('history?q=entity%3Awho-line+type%3Aupdate');
    const row = page.locator('.entry-row');
    await expect
      .poll(() => row.locator('.entry-actor').textContent())
      .toBe('Jane Doe (u-17) on behalf of Acme Ltd (c-1) · 203.0.113.7');
    await row.locator('.entry-link').click();
    const facts = page.getByRole('complementary').locator('.facts');
    await facts.getByText('Jane Doe (u-17) on behalf of Acme Ltd (c-1) · 203.0.113.7 · with 2 other changes').waitFor();
    await checkAccessibility(page);

    const query = page.getByRole('combobox', { name: 'Query' });
    for (const [name, expected, total] of [
      ['Acme Ltd (c-1)', `onBehalfOfId:c-1 ${anyTime}`, 3],
      ['203.0.113.7', `context.ip:203.0.113.7 ${anyTime}`, 3],
      ['2 other changes', String.raw`correlationId:"who, \"1\"" ${anyTime}`, 3],
    ] as const) {
      await facts.getByRole('link', { name }).first().click();
      await expect.poll(() => query.inputValue()).toBe(expected);
      await expect.poll(() => totalOf(page)).toBe(total);
      await page.goBack();
    }
    // In the list as well, without opening the change.
    await expect.poll(() => totalOf(page)).toBe(1);
    await row.getByRole('link', { name: '203.0.113.7' }).click();
    await expect.poll(() => query.inputValue()).toBe(`context.ip:203.0.113.7 ${anyTime}`);
  });

  test('what is not known of a change is not shown, and no context to those who may not read it', async () => {
    const { server, tenant, open } = the();
    const life = { entity: 'who-little', actor: 'Jane Doe', context: '{"ip":"203.0.113.8"}' };
    await recordLife(server, tenant, { ...life, who: { actorId: 'Jane Doe', correlationId: 'alone' } }, ['{"a":1}']);
    const page = await open('history?q=entity%3Awho-little', { scope: 'changelog.changelog_read' });
    await page.locator('.entry-link').click();
    const facts = page.getByRole('complementary').locator('.facts');
    await facts.getByText('Who', { exact: true }).waitFor();
    await page.getByRole('complementary').locator('.path-item').first().waitFor();
    expect(await facts.locator('.who').textContent()).toBe('Jane Doe');
    expect(await page.locator('.entry-actor').textContent()).toBe('Jane Doe');
  });

  test('changes of one request are one line that opens, by the keyboard too, and the order of the list stays', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const from = Date.now() - 60_000;
    const change = async (entityId: string, second: number, correlationId?: string) => {
      const who = correlationId === undefined ? {} : { correlationId };
      const life = { entity: 'batch', entityId, actor: 'Importer', from: from + second * 1_000, who };
      await recordLife(server, tenant, life, ['{"a":1}']);
    };
    await change('1', 1, 'one');
    await change('2', 2, 'one');
    await change('3', 3);
    await change('4', 4, 'two');
    await change('5', 5, 'two');
    await change('6', 6, 'two');
    await change('7', 7, 'one');

    const page = await open('history?q=entity%3Abatch');
    const heading = page.getByRole('button', { name: /changes together/ });
    await expect.poll(() => heading.count()).toBe(2);
    await expect.poll(() => idsOf(page)).toEqual(['7', '3']);
    expect(await heading.first().getAttribute('aria-expanded')).toBe('false');
    expect((await heading.first().textContent())?.startsWith('3 changes together batchImporter')).toBe(true);
    await checkAccessibility(page);

    // Two steps of j: the first row, and the heading below it.
    for (const key of ['j', 'j', 'Enter']) await page.keyboard.press(key);
    await expect.poll(() => idsOf(page)).toEqual(['7', '6', '5', '4', '3']);
    expect(await heading.first().evaluate((button) => button.matches(':focus'))).toBe(true);
    expect(await heading.first().getAttribute('aria-expanded')).toBe('true');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('complementary').getByText('with 2 other changes').waitFor();
    await checkAccessibility(page);
    await page.keyboard.press('Escape');
    await page.getByRole('complementary').waitFor({ state: 'detached' });
    await expect.poll(() => idsOf(page)).toEqual(['7', '6', '5', '4', '3']);

    await page.getByRole('checkbox', { name: 'Group' }).uncheck();
    await expect.poll(() => idsOf(page)).toEqual(['7', '6', '5', '4', '3', '2', '1']);
    await page.reload();
    await expect.poll(() => idsOf(page)).toEqual(['7', '6', '5', '4', '3', '2', '1']);
    await page.getByRole('checkbox', { name: 'Group' }).check();
    await expect.poll(() => heading.count()).toBe(2);

    // The group of the address is open. The whole group has what is elsewhere in the list.
    await page.setViewportSize({ width: 360, height: 760 });
    await expect.poll(() => sidewaysRoom(page)).toBe(0);
    await page.getByRole('link', { name: 'Show the whole group' }).last().click();
    await expect.poll(() => totalOf(page)).toBe(3);
  });

  test('who exactly, for whom and from where is written with suggestions', async () => {
    const { server, tenant, open } = the();
    const who = { actorId: 'w-9', onBehalfOf: { name: 'Umbrella' } };
    const life = { entity: 'suggested', actor: 'Wilma', context: '{"ip":"198.51.100.4"}', who };
    await recordLife(server, tenant, life, ['{"a":1}']);
    const page = await open('history');
    const query = page.getByRole('combobox', { name: 'Query' });
    await query.click();
    const accept = async (typed: string, name: RegExp | string) => {
      await query.pressSequentially(typed);
      await page.getByRole('option', { name }).first().click();
    };
    // By the name, though the id is what is asked for.
    await accept('actorId:wil', /^w-9\s*Wilma/);
    await accept('onBehalfOf:U', /^Umbrella/);
    await accept('context.ip:198', /^198\.51\.100\.4/);
    await accept('correl', /^correlationId/);
    await accept('miss', /^missing/);
    const asked = 'actorId:w-9 onBehalfOf:Umbrella context.ip:198.51.100.4 correlationId:missing';
    await expect.poll(() => query.inputValue()).toBe(`${asked} `);
    await expect
      .poll(() => page.locator('.query-token.field').allInnerTexts())
      .toEqual(['actorId:', 'onBehalfOf:', 'context.ip:', 'correlationId:']);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Enter');
    await expect.poll(() => totalOf(page)).toBe(1);

    await query.fill('entity:suggested context."user-agent":missing');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove context."user-agent"' }).waitFor();
    await expect
      .poll(() => page.locator('.query-token.field').allInnerTexts())
      .toEqual(['entity:', 'context."user-agent":']);
    await expect.poll(() => totalOf(page)).toBe(1);
  });

  test('the group of the change whose address is opened is open', async () => {
    const { server, tenant, open } = the();
    const who = { correlationId: 'shared' };
    await recordLife(server, tenant, { entity: 'shared', who }, ['{"a":1}', '{"a":2}', '{"a":3}']);
    const page = await open('history?q=entity%3Ashared');
    await page.getByRole('button', { name: '3 changes together' }).click();
    const href = (await page.locator('.entry-link').nth(1).getAttribute('href')) ?? '';
    const another = await open(href.replace(/^.*\/console\//, ''), { fresh: true });
    await another.locator('.entry-row.open').waitFor();
    await expect.poll(() => another.locator('.entry-row').count()).toBe(3);
  });
}

/** The ids of the documents of the rows, in their order. */
async function idsOf(page: Page): Promise<string[]> {
  return await page.locator('.entry-row .entry-document strong').allInnerTexts();
}
