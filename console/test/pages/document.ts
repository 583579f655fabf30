import { readFile } from 'node:fs/promises';
import { parseJson, stringifyJson } from '@annals/client/json';
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
    await page.getByText('Below is its last state.').waitFor();
    await page.locator('.json-tree').getByText('Reading lamp').waitFor();
    await expect.poll(() => page.locator('.timeline-item').count()).toBe(4);
    await expect.poll(() => page.title()).toBe('lamp 1 · Document · Annals');
    await expect.poll(() => page.locator('.timeline-item').nth(2).textContent()).toContain('price.amount 1.10 → 1.25');
    // The slider moves through the changes, by keys too.
    const slider = page.getByRole('slider');
    await slider.focus();
    await page.keyboard.press('ArrowLeft');
    await page.getByText('As it was from').waitFor();
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

  test('a day is typed by the keyboard alone, whatever the field had, and each side has a time of its own', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const entityId = `typed-${Date.now()}`;
    const from = Date.parse('2026-02-15T10:00:00Z');
    await recordLife(server, tenant, { entity: 'lamp', entityId, from }, versions.slice(0, 1));
    const later = { entity: 'lamp', entityId, before: versions[0] ?? '', from: Date.parse('2026-03-30T10:00:00Z') };
    await recordLife(server, tenant, later, versions.slice(1, 2));
    // The day that the field has is none of February.
    const page = await open(`document?entity=lamp&id=${entityId}&at=2026-03-31T12:00:00Z`);
    const field = (label: string) => page.getByLabel(label, { exact: true });
    await expect.poll(() => field('As on').inputValue()).toMatch(/^2026-03-31T14:00/);
    const isOn = (selector: string) => page.evaluate((of) => document.activeElement?.matches(of) === true, selector);
    const tabTo = async (selector: string) => {
      for (let tabs = 0; tabs < 60 && !(await isOn(selector)); tabs += 1) await page.keyboard.press('Tab');
    };
    await page.locator('main').focus();
    await tabTo('.as-on input');
    // In the order of Chromium's own language, whatever that of the page.
    await page.keyboard.type('02162026');
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).searchParams.get('at')).toBe('2026-02-16T14:00:00+01:00');
    await page.locator('.json-tree').getByText('1.10', { exact: true }).waitFor();
    await tabTo('.as-on button:nth-of-type(2)');
    await page.keyboard.press('Enter');
    const price = page.locator('.path-item', { hasText: 'price.amount' });
    await expect.poll(() => price.locator('.value-side').allTextContents()).toEqual(['−Before1.10', '+After1.25']);
    expect(new URL(page.url()).searchParams.get('with')).toBe('now');
    await checkAccessibility(page);
    await field('Beside').fill('2026-02-17T12:00:00');
    await field('Beside').press('Enter');
    await page.getByText('The document is the same at both moments.').waitFor();
    await page
      .locator('.as-on', { has: field('Beside') })
      .getByRole('button', { name: 'Now' })
      .click();
    await price.waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
  });

  test('a time to the millisecond is kept, and one before the creation or in the future says so', async () => {
    const { server, tenant, open } = the();
    const entityId = `ms-${Date.now()}`;
    const from = Date.parse('2026-01-15T10:00:00.250Z');
    await recordLife(server, tenant, { entity: 'lamp', entityId, from }, versions);
    const page = await open(`document?entity=lamp&id=${entityId}&changes=2`);
    const field = page.getByLabel('As on', { exact: true });
    await expect.poll(() => field.inputValue()).toBe('2026-01-15T11:00:01.25');
    const showAt = async (text: string) => {
      await field.fill(text);
      await page.getByRole('button', { name: 'Show', exact: true }).click();
    };
    await showAt('2026-01-15T11:00:01.249');
    await page.locator('.json-tree').getByText('1.10', { exact: true }).waitFor();
    expect(new URL(page.url()).searchParams.get('at')).toBe('2026-01-15T11:00:01.249+01:00');
    await showAt('2026-01-15T11:00:00.249');
    await page.getByText('It did not exist yet: before its first change of').waitFor();
    await page.getByText('After change 0 of 3').waitFor();
    await showAt('2096-01-15T11:00:00');
    await page.getByText('This moment is in the future. The document is shown as it is now.').waitFor();
    await page.locator('.json-tree').getByText('Reading lamp').waitFor();
    await page.getByRole('button', { name: 'Now', exact: true }).click();
    await expect.poll(() => new URL(page.url()).search).toBe(`?entity=lamp&id=${entityId}`);
    expect(await page.getByText('This moment is in the future').count()).toBe(0);
  });

  test('a document is copied and downloaded at each moment with every digit, a deleted one in its last state', async () => {
    const { server, tenant, open } = the();
    const text = '{"big":9007199254740993.10,"by":{"10":1.10,"2":-0},"name":"Æ \u202e/"}';
    const from = Date.parse('2026-02-03T10:00:00Z');
    await recordLife(server, tenant, { entity: 'la/mp', entityId: 'x 1', from }, [text, '{"big":1}', undefined]);
    const page = await open('document?entity=la/mp&id=x+1&changes=1');
    const copied: string[] = [];
    await page.exposeFunction('tellCopied', (value: string) => copied.push(value));
    await page.evaluate(() => {
      Object.defineProperty(navigator, 'clipboard', {
        configurable: true,
        value: {
          writeText: async (value: string) =>
            (globalThis as unknown as { tellCopied(of: string): void }).tellCopied(value),
        },
      });
    });
    const take = async () => {
      copied.length = 0;
      await page.getByRole('button', { name: 'Copy JSON of the document' }).click();
      await expect.poll(() => copied.length).toBe(1);
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download' }).click(),
      ]);
      const file = await readFile(await download.path(), 'utf8');
      expect(file).toBe(copied[0]);
      return { name: download.suggestedFilename(), file };
    };
    await page.locator('.json-tree').getByText('9007199254740993.10').waitFor();
    const first = await take();
    expect(first.name).toBe('la-mp_x-1_2026-02-03T10-00-00.000Z.json');
    expect(stringifyJson(parseJson(first.file))).toBe(stringifyJson(parseJson(text)));
    for (const digits of ['9007199254740993.10', '1.10', '-0']) expect(first.file).toContain(digits);
    await page.getByRole('button', { name: 'Now', exact: true }).click();
    await page.getByText('Deleted at').waitFor();
    await page.getByText('Another application keeps documents of this type.').waitFor();
    expect(await page.getByRole('button', { name: 'Bring back' }).count()).toBe(0);
    expect(await take()).toEqual({
      name: 'la-mp_x-1_2026-02-03T10-00-01.000Z.json',
      file: '{\n  "big": 1\n}',
    });
    // One whose deletion alone was recorded is known from it.
    await recordLife(server, tenant, { entity: 'lamp', entityId: 'gone', before: '{"left":2}' }, [undefined]);
    const gone = await open('document?entity=lamp&id=gone', { width: 390, height: 760 });
    await gone.getByText('Below is its last state.').waitFor();
    await gone.locator('.json-tree').getByText('left').waitFor();
    expect(await sidewaysRoom(gone)).toBe(0);
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
