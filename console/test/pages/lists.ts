import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';

const basket = (items: readonly string[]) => `{"note":"x","items":[${items.join(',')}]}`;
const item = (sku: string, quantity: string, more = '') => `{"sku":"${sku}","quantity":${quantity}${more}}`;

const before = [item('cup', '1.10'), item('jug', '2'), item('mill', '3'), item('lid', '4')];
const after = [item('lid', '4'), item('cup', '1.1'), item('mill', '3'), item('te\\u202ea', '9007199254740993')];

/** The rows of the tables of a page: their cells, joined. */
const rows = (page: Page, within = '') =>
  page
    .locator(`${within} .list-table tbody tr`)
    .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent).join('|')));

const expected = [
  'Moved|4 → 1|lid|4',
  'Changed|2|cup|1.10 → 1.1',
  'Removed|2|jug|2',
  '|3|mill|3',
  'Added|4|teU+202Ea|9007199254740993',
];

/** How a person reads lists of objects, such as the items of an order. */
export function listTests(the: () => ConsoleUnderTest): void {
  test('a list of objects is a table in a document, in a comparison and in a change, which tells apart what was added, removed, moved and changed', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const entityId = `basket-${Date.now()}`;
    await recordLife(server, tenant, { entity: 'basket', entityId }, [basket(before), basket(after)]);
    const page = await open(`document?entity=basket&id=${entityId}`);
    await expect.poll(() => rows(page)).toEqual(['1|lid|4', '2|cup|1.1', '3|mill|3', '4|teU+202Ea|9007199254740993']);
    // The line of a change has words for a list, too.
    expect(await page.locator('.timeline-paths').first().textContent()).toBe('items list changed');
    await checkAccessibility(page);
    await page.getByRole('button', { name: 'Compare with change 1' }).click();
    await expect.poll(() => rows(page)).toEqual(expected);
    await checkAccessibility(page);
    const change = await open(`history?q=entity:basket+entityId:${entityId}+type:update`, { width: 390, height: 800 });
    await change.locator('.entry-link').first().click();
    await expect.poll(() => rows(change, '.side-panel')).toEqual(expected);
    expect(await change.locator('.side-panel .path-item h2').allTextContents()).toEqual(['items']);
    expect(await sidewaysRoom(change)).toBe(0);
    await checkAccessibility(change);
    await change.getByRole('button', { name: 'Before and after' }).click();
    await expect
      .poll(() => rows(change, '.entry-documents .card:first-child'))
      .toEqual(['1|cup|1.10', '2|jug|2', '3|mill|3', '4|lid|4']);
  });

  test('a change of one element shows which one it is, and who sees no documents the path as it was recorded', async () => {
    const { server, tenant, open } = the();
    const entityId = `one-${Date.now()}`;
    const items = Array.from({ length: 9 }, (_, index) => item(`sku-${index}`, '1', ',"name":"Something of a name"'));
    await recordLife(server, tenant, { entity: 'basket', entityId }, [
      basket(items),
      basket(items.with(7, item('sku-7', '2', ',"name":"Something of a name"'))),
    ]);
    const address = `history?q=entity:basket+entityId:${entityId}+type:update`;
    const page = await open(address);
    await page.locator('.entry-link').first().click();
    await expect.poll(() => rows(page, '.side-panel')).toEqual(['Changed|8|sku-7|1 → 2|Something of a name']);
    await page.getByRole('button', { name: 'Show 8 unchanged rows' }).click();
    await expect.poll(async () => (await rows(page, '.side-panel')).length).toBe(9);
    const part = await open(address, {
      scope: 'changelog.changelog_read',
      query: `entity:basket entityId:${entityId} type:update`,
    });
    await part.locator('.entry-link').first().click();
    await expect.poll(() => part.locator('.path-item h2').allTextContents()).toEqual(['items.7.quantity']);
  });

  test('of a long or wide list the first rows and columns are shown, and the others when one asks; a deep one stays JSON', async () => {
    const { server, tenant, open } = the();
    const entityId = `long-${Date.now()}`;
    const wide = Array.from({ length: 9 }, (_, index) => `"m${index}":${index}`).join(',');
    const deep = `[{"of":[${Array.from({ length: 30 }, (_, index) => index).join(',')}]}]`;
    const text = (count: number) =>
      `{"long":[${Array.from({ length: count }, () => '{"n":1}').join(',')}],"wide":[{${wide}}],"deep":${deep}}`;
    await recordLife(server, tenant, { entity: 'basket', entityId }, [text(20), text(21)]);
    const page = await open(`document?entity=basket&id=${entityId}&changes=1`);
    await expect.poll(async () => (await rows(page)).length).toBe(21);
    expect(await page.getByRole('button', { name: /more row/ }).count()).toBe(0);
    expect(await page.locator('.list-table').last().locator('th').allTextContents()).not.toContain('m8');
    await page.getByRole('button', { name: 'Show 1 more column' }).click();
    await expect.poll(() => page.locator('.list-table').last().locator('th').allTextContents()).toContain('m8');
    expect(await page.locator('.list-table').count()).toBe(2);
    await page.getByRole('button', { name: 'Now', exact: true }).click();
    await page.getByRole('button', { name: 'Show 1 more row' }).click();
    await expect.poll(async () => (await rows(page)).length).toBe(22);
  });

  test('on a narrow screen a wide list scrolls by itself, and its words stay whole', async () => {
    const { server, tenant, open } = the();
    const entityId = `wide-${Date.now()}`;
    const more = ',"colour":"aquamarine","unitPrice":1199.50,"warehouse":"Gothenburg","note":"unbreakable"';
    const items = [item('espresso', '1', more), item('grinder', '2', more)];
    await recordLife(server, tenant, { entity: 'basket', entityId }, [
      basket(items),
      basket(items.slice(1)),
      basket([...items, item('x', '1')]),
    ]);
    const page = await open(`document?entity=basket&id=${entityId}`, { width: 390, height: 800 });
    const isWhole = async () => {
      await page.locator('.list-table td', { hasText: 'aquamarine' }).first().waitFor();
      expect(await sidewaysRoom(page)).toBe(0);
      const heights = await page
        .locator('.list-table td', { hasText: 'aquamarine' })
        .evaluateAll((all) => all.map((cell) => cell.clientHeight));
      expect(Math.max(...heights)).toBeLessThan(48);
    };
    await isWhole();
    await page.getByRole('button', { name: 'Compare with change 1' }).click();
    await page.getByText('Added').waitFor();
    await isWhole();
  });
}
