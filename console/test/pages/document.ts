import { expect, test } from 'vitest';
import { checkScrolling } from '../support/accessibility.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';

const versions = [
  '{"name":"Lamp","price":{"amount":1.10,"currency":"EUR"},"tags":["new"]}',
  '{"name":"Lamp","price":{"amount":1.25,"currency":"EUR"},"tags":["new"]}',
  '{"name":"Reading lamp","price":{"amount":1.25,"currency":"EUR"},"tags":["new","desk"]}',
];

/** What a person does on the page of a document. */
export function documentTests(the: () => ConsoleUnderTest): void {
  test('the life of a document is there, and the document at every moment of it', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    await recordLife(server, tenant, { entity: 'lamp', name: 'Lamp' }, [...versions, undefined]);
    const page = await open('document?entity=lamp&id=1');
    await page.getByText('The document does not exist at this moment').waitFor();
    await expect.poll(() => page.locator('.timeline-item').count()).toBe(4);
    await expect.poll(() => page.locator('.timeline-item').nth(2).textContent()).toContain('price.amount 1.10 → 1.25');
    // The slider moves through the changes, by keys too.
    const slider = page.getByRole('slider');
    await slider.focus();
    await page.keyboard.press('ArrowLeft');
    await page.locator('.json-tree').getByText('Reading lamp').waitFor();
    await page.keyboard.press('Home');
    await page.locator('.json-tree').getByText('1.10', { exact: true }).waitFor();
    await expect.poll(() => page.url()).toContain('changes=1');
    await expect.poll(() => page.locator('.timeline-item.shown').textContent()).toContain('Robin');
    await checkAccessibility(page);
    await page.getByRole('link', { name: 'What touched it' }).click();
    const touching =
      /^compoundLogicalQuery:\(\(entity:lamp entityId:1\) OR \(related:elemMatch\(entity:lamp entityId:1\)\)\) /;
    await expect.poll(() => new URL(page.url()).searchParams.get('q')).toMatch(touching);
    await expect.poll(() => page.locator('.entry-link').count()).toBe(4);
  });

  test('two moments are compared, whichever is chosen first', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    await recordLife(server, tenant, { entity: 'lamp', entityId: '2' }, versions);
    const page = await open('document?entity=lamp&id=2&changes=1');
    await page.getByRole('button', { name: 'Compare with change 3' }).click();
    await page.locator('.path-item').first().waitFor();
    await expect.poll(() => page.locator('.path-item h2').allInnerTexts()).toEqual(['name', 'price.amount', 'tags.1']);
    const price = page.locator('.path-item', { hasText: 'price.amount' });
    await expect.poll(() => price.locator('.value-side.removed').textContent()).toContain('1.10');
    await expect.poll(() => price.locator('.value-side.added').textContent()).toContain('1.25');
    await checkAccessibility(page);
    await page.getByRole('button', { name: 'Stop comparing' }).click();
    await page.locator('.json-tree').waitFor();
  });

  test('each field says who touched it last, and leads to that moment', async () => {
    const { server, tenant, open } = the();
    await recordLife(server, tenant, { entity: 'lamp', entityId: '3', actor: 'Ada' }, versions.slice(0, 2));
    await recordLife(
      server,
      tenant,
      { entity: 'lamp', entityId: '3', actor: 'Grace', before: versions[1] ?? '' },
      versions.slice(2),
    );
    const page = await open('document?entity=lamp&id=3&show=fields');
    const row = (field: string) => page.getByRole('row', { name: new RegExp(`^${field} `) });
    await row('name').getByText('Grace', { exact: true }).first().waitFor();
    // All who ever touched it, the latest first.
    await expect.poll(() => row('name').getByRole('cell').last().textContent()).toBe('Grace, Ada');
    await row('price.currency').getByText('Ada').first().waitFor();
    await row('price.currency').getByRole('button').click();
    await expect.poll(() => page.url()).toContain('changes=1');
    await row('name').getByText('Ada').first().waitFor();
    await row('price.amount').getByRole('link', { name: 'price.amount' }).click();
    await expect
      .poll(() => new URL(page.url()).searchParams.get('q'))
      .toBe('entity:lamp entityId:3 path:price.amount occurredAt:>="1970-01-01T00:00:00Z"');
    await expect.poll(() => page.locator('.entry-link').count()).toBe(2);
  });

  test('a document whose beginning was not recorded says since when it is known', async () => {
    const { server, tenant, open } = the();
    await recordLife(server, tenant, { entity: 'lamp', entityId: '4', before: '{"a":1,"b":2}' }, ['{"a":3,"b":2}']);
    const page = await open('document?entity=lamp&id=4');
    await page.getByText('Known since').waitFor();
  });

  test('a document of which nothing is recorded is no empty page', async () => {
    const page = await the().open('document?entity=lamp&id=none', { statuses: [404] });
    await page.getByRole('alert').getByText('The history has nothing about lamp none').waitFor();
    // An unknown id can be corrected: writing leads to the search, and keeps the focus.
    const text = page.getByLabel('Name or id');
    await expect.poll(() => text.inputValue()).toBe('none');
    await text.press('ControlOrMeta+A');
    await page.keyboard.type('brisk');
    await expect.poll(() => page.url()).toContain('document?text=brisk');
    await page.keyboard.type('-g');
    await page.getByRole('link', { name: 'product brisk-go' }).click();
    await page.getByRole('heading', { name: 'product brisk-go' }).waitFor();
  });

  test('documents are found by words of their names, by type, and by how long they are unchanged', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const days = (count: number) => Date.now() - count * 86_400_000;
    const shelf = (entityId: string, name: string, from: number) =>
      recordLife(server, tenant, { entity: 'shelf', entityId, name, from }, ['{"a":1}']);
    await shelf('s-1', 'Oak shelf', days(400));
    await shelf('s-2', 'Oak shelf, wide', days(40));
    await shelf('s-3', 'Walnut shelf', days(2));
    const page = await open('document');
    const found = page.getByRole('region', { name: 'Documents' }).locator('.document-name');
    await page.getByLabel('Name or id').fill('shelf OA');
    await expect.poll(() => found.allInnerTexts()).toEqual(['Oak shelf, wide shelf s-2', 'Oak shelf shelf s-1']);
    await checkAccessibility(page);
    await page.getByLabel('Unchanged for').selectOption('a year');
    await expect.poll(() => found.allInnerTexts()).toEqual(['Oak shelf shelf s-1']);
    // The address has all of it.
    await page.setViewportSize({ width: 320, height: 700 });
    await page.reload();
    await expect.poll(() => found.allInnerTexts()).toEqual(['Oak shelf shelf s-1']);
    expect(await sidewaysRoom(page)).toBe(0);
    await page.getByLabel('Name or id').fill('');
    await page.getByLabel('Unchanged for').selectOption('any time');
    await page.getByLabel('Type').fill('shelf');
    await expect.poll(() => found.count()).toBe(3);
  });

  test('on a narrow screen nothing scrolls sideways, and the keyboard reaches the fields', async () => {
    const page = await the().open('document?entity=product&id=brisk-go', { width: 380, height: 760 });
    await page.locator('.json-tree').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await page.getByRole('button', { name: 'Who touched what last' }).click();
    await page.locator('tbody tr').first().waitFor();
    await checkScrolling(page);
  });
}
