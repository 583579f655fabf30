import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';

const searchField = (page: Page) => page.getByRole('combobox', { name: 'Search everything' });
const hasFocus = (page: Page, selector: string) =>
  page.evaluate((of) => document.activeElement?.matches(of) === true, selector);

/** The titles of what was found, in the order of the page. */
const groups = (page: Page) =>
  page.locator('dialog .find-group').evaluateAll((all) => all.map((element) => element.ariaLabel));

/** The addresses that what was found leads to. */
const addresses = (page: Page) =>
  page
    .getByRole('option')
    .evaluateAll((all) =>
      all.map((element) => decodeURIComponent(element.getAttribute('href') ?? '').replaceAll('+', ' ')),
    )
    .then((all) => all.map((address) => address.split('/console/')[1]));

/** How a person finds anything from any page. */
export function findTests(the: () => ConsoleUnderTest): void {
  test('one search finds saved views, documents, people, types, fields and pages, and Enter opens the first', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    await recordLife(
      server,
      tenant,
      { entity: 'zebra-order', entityId: 'z-77', name: 'Chairs of Zebulon', actor: 'Zora Zebulon' },
      ['{"zebra":{"stripes":1}}', '{"zebra":{"stripes":2}}'],
    );
    const call = await caller(the());
    await call('PUT', '/changelog/demo/views/zebra', { name: 'Zebra changes', q: 'path:zebra' });
    const page = await open('overview', { fresh: true });
    await page.locator('.bar-chart canvas').first().waitFor();
    await page.getByRole('link', { name: 'History' }).first().focus();
    await page.keyboard.press('Control+k');
    await searchField(page).waitFor();
    // What has an address of its own is there before a word is written.
    await page.getByRole('option', { name: 'Overview' }).waitFor();
    await expect.poll(() => groups(page)).toEqual(['Saved views', 'Pages']);
    const askedPaths: string[] = [];
    page.on('request', (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname.endsWith('/names') && searchParams.get('field') === 'path')
        askedPaths.push(searchParams.get('prefix') ?? '');
    });
    await page.keyboard.type('zeb');
    await page.getByRole('option', { name: 'Zora Zebulon' }).waitFor();
    await expect
      .poll(() => groups(page))
      .toEqual(['Saved views', 'Documents', 'People and systems', 'Types of documents', 'Fields', 'Text of changes']);
    await page
      .getByRole('dialog')
      .getByRole('status')
      .getByText(/^\d+ results$/)
      .waitFor();
    await expect
      .poll(() => addresses(page))
      .toEqual(
        expect.arrayContaining([
          'history?view=zebra',
          'document?entity=zebra-order&id=z-77',
          'actor?name=Zora Zebulon',
          'history?q=entity:zebra-order',
          'history?q=path:zebra.stripes',
        ]),
      );
    await checkAccessibility(page, 'dialog');
    // The first of all fields are the same for any text, so they are read once.
    await page.keyboard.type('r');
    await expect.poll(() => groups(page)).not.toContain('People and systems');
    expect(askedPaths).toContain('zebr');
    expect(askedPaths.filter((prefix) => prefix === '')).toEqual(['']);
    // Escape gives the focus back to where it was.
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    await expect.poll(() => hasFocus(page, '.navigation-link')).toBe(true);

    // The address of what was opened is there before the search is gone, which would take the next key.
    const isGone = async () => await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    const find = async (text: string, ...keys: string[]) => {
      await isGone();
      await page.keyboard.press('/');
      await searchField(page).waitFor();
      await page.keyboard.type(text);
      for (const key of keys) await page.keyboard.press(key);
    };
    const shown = () => decodeURIComponent(page.url().split('/console/')[1] ?? '').replaceAll('+', ' ');
    // What is typed before the field is there is not lost, and Enter waits for what was written last.
    await isGone();
    await page.evaluate(() => {
      for (const key of '/ze')
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    });
    await searchField(page).waitFor();
    await page.keyboard.type('bulon');
    await page.keyboard.press('Enter');
    await expect.poll(shown).toBe('document?entity=zebra-order&id=z-77');
    await expect.poll(() => hasFocus(page, 'main')).toBe(true);
    await call('DELETE', '/changelog/demo/views/zebra');
    await find('job');
    await page.getByRole('option', { name: 'Jobs' }).waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(shown).toBe('data/jobs');
    await find('type:delete actor:Zora Zebulon', 'Enter');
    await expect.poll(shown).toBe('history?q=type:delete actor:Zora Zebulon');
    // In a field the key is a character.
    await isGone();
    await expect.poll(() => hasFocus(page, 'main')).toBe(true);
    await page.getByRole('combobox', { name: 'Query' }).fill('');
    await page.keyboard.press('/');
    await expect.poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue()).toBe('/');
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  test('an exact id is the first that is found, although more than a page of longer ones changed later', async () => {
    const { server, tenant, open } = the();
    const id = `exact-${Date.now()}`;
    const at = Date.now() - 2 * 86_400_000;
    await recordLife(server, tenant, { entity: 'cask', entityId: id, from: at }, ['{"a":1}']);
    await Promise.all(
      Array.from({ length: 105 }, (_, index) =>
        recordLife(server, tenant, { entity: 'cask', entityId: `${id}-${index}`, from: at + 1_000 }, ['{"a":1}']),
      ),
    );
    const call = await caller(the());
    const view = `view-${id}`;
    await call('PUT', `/changelog/demo/views/${view}`, { name: `${id} alone`, q: `entity:cask` });
    const page = await open('overview', { fresh: true });
    await page.locator('.bar-chart canvas').first().waitFor();
    await page.keyboard.press('/');
    await searchField(page).waitFor();
    await page.keyboard.type(id);
    await expect.poll(async () => (await addresses(page))[0]).toBe(`document?entity=cask&id=${id}`);
    expect((await groups(page)).slice(0, 2)).toEqual(['Documents', 'Saved views']);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: `cask ${id}`, exact: true }).waitFor();
    await call('DELETE', `/changelog/demo/views/${view}`);
    // The search of the page Document has the same order, and with a time still has the exact one.
    for (const filter of ['', '&unchanged=1']) {
      const search = await open(`document?text=${id}${filter}`);
      const names = search.getByRole('region', { name: 'Documents' }).locator('.document-name');
      await expect.poll(() => names.first().textContent()).toBe(`${id} cask`);
      await expect.poll(() => names.count()).toBe(100);
    }
  });

  test('arrows go round what was found, a word that finds nothing says so, and what the scopes forbid is not requested', async () => {
    const { open } = the();
    // The browser would log a refused request as an error, which fails the test.
    const page = await open('', { scope: 'ai.agent_read', width: 320, height: 640 });
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await searchField(page).waitFor();
    const selected = page.locator('[role=option][aria-selected=true]');
    await expect.poll(() => selected.allInnerTexts()).toEqual(['Overview']);
    await page.keyboard.press('ArrowUp');
    await expect.poll(() => selected.allInnerTexts()).toEqual(['Data']);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => selected.allInnerTexts()).toEqual(['AI desk']);
    expect(await sidewaysRoom(page)).toBe(0);
    await page.keyboard.type('a');
    await page.getByRole('option', { name: 'Agents' }).waitFor();
    await expect.poll(() => groups(page)).toEqual(['Pages']);
    await expect.poll(() => page.getByRole('option').allInnerTexts()).toEqual(['AI desk', 'Agents\nAI desk']);
    await page.keyboard.type('qqqq');
    await page.getByRole('status').getByText('Nothing begins with “aqqqq”.').waitFor();
    await page.keyboard.press('Enter');
    expect(await page.getByRole('dialog').count()).toBe(1);
  });
}
