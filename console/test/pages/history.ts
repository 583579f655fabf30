import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { recordLife } from '../support/record-life.ts';

/** What a person does on the History page. */
export function historyTests(the: () => ConsoleUnderTest): void {
  test('the total, the chart, the facets and the list say the same', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('history');
    const total = await totalOf(page);
    expect(total).toBeGreaterThan(1_000);
    const types = await facetCounts(page, 'Type');
    expect(types.map(([name]) => name).toSorted()).toEqual(['create', 'delete', 'update']);
    expect(types.reduce((sum, [, count]) => sum + count, 0)).toBe(total);
    expect(await page.locator('.entries-footer').textContent()).toContain(total.toLocaleString('en'));
    expect(await page.locator('.entry-row').count()).toBe(50);
    await page.locator('.bar-chart canvas').waitFor();
    const few = await open('history?q=entity%3Acoupon+type%3Adelete');
    await few.locator('.bar-chart canvas').waitFor();
    await checkAccessibility(few);
  });

  test('a query is written with suggestions and the keyboard alone', async () => {
    const page = await the().open('history');
    await page.locator('.entry-row').first().waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('ent');
    await page.getByRole('option', { name: /^entity the type/ }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.keyboard.type('PROD');
    await page.getByRole('option', { name: 'product' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Tab');
    await page.keyboard.type('type:update');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Enter');
    await expect
      .poll(() => page.url())
      .toContain(`q=${new URLSearchParams({ q: 'entity:product type:update' }).toString().slice(2)}`);
    await expect.poll(() => chips(page)).toEqual(['entity product', 'type update']);
    await expect.poll(async () => (await facetCounts(page, 'Entity')).map(([name]) => name)).toEqual(['product']);
  });

  test('a fault is shown under its character, in the words of the service', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('history?q=entity%3Aorder+status%3AOPEN', { statuses: [400] });
    await page.getByRole('alert').getByText('Position 14: Unsupported query field: status').waitFor();
    expect(await page.locator('.query-token.fault').textContent()).toBe('s');
    expect(await page.locator('.facet-others').allInnerTexts()).toEqual(['not counted', 'not counted', 'not counted']);
    await checkAccessibility(page);
    await page.getByRole('button', { name: 'Remove status' }).click();
    await expect.poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue()).toBe('entity:order');
    await page.locator('.entry-row').first().waitFor();
  });

  test('a click on a facet writes the query, and the way back leads to what was there', async () => {
    const page = await the().open('history');
    const all = await totalOf(page);
    const [, deletes = 0] = (await facetCounts(page, 'Type')).find(([name]) => name === 'delete') ?? [];
    await page.locator('.facet', { hasText: 'Type' }).getByRole('button', { name: 'delete' }).click();
    await expect.poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue()).toBe('type:delete');
    await expect.poll(() => totalOf(page)).toBe(deletes);
    await page.goBack();
    await expect.poll(() => totalOf(page)).toBe(all);
  });

  test('a drag over the chart narrows the time to the bars that it touched', async () => {
    const page = await the().open('history');
    const all = await totalOf(page);
    const plot = page.locator('.bar-chart .u-over');
    const box = await plot.boundingBox();
    if (box === null) throw new Error('no chart');
    await page.mouse.move(box.x + box.width * 0.4, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await expect
      .poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue())
      .toMatch(/^occurredAt:\(>="\S+T00:00:00\.000Z" AND <"\S+T00:00:00\.000Z"\)$/);
    await expect.poll(() => totalOf(page)).toBeLessThan(all);
    expect(await totalOf(page)).toBeGreaterThan(0);
    // A click takes one bar, and the keyboard can do the same.
    const several = await totalOf(page);
    const bars = await plot.boundingBox();
    await page.mouse.click((bars?.x ?? 0) + (bars?.width ?? 0) / 2, (bars?.y ?? 0) + 40);
    await expect.poll(() => totalOf(page)).toBeLessThan(several);
    const narrowed = page.url();
    await page.getByRole('application').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).not.toBe(narrowed);
  });

  test('pages keep the query, and j, k and Enter lead to a detail that has an address of its own', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('history?q=entity%3Aproduct');
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByText('Page 2 of').waitFor();
    await expect.poll(() => chips(page)).toEqual(['entity product']);
    await expect.poll(() => page.locator('.entry-row').count()).toBeGreaterThan(2);
    for (const key of ['j', 'j', 'k', 'Enter']) await page.keyboard.press(key);
    const panel = page.getByRole('complementary');
    await panel.getByText('Who').waitFor();
    const title = await panel.getByRole('heading').first().textContent();
    await checkAccessibility(page, '.side-panel');

    const shared = await open(page.url().split('/console/')[1] ?? '');
    await shared.getByRole('complementary').getByText('Who').waitFor();
    expect(await shared.getByRole('complementary').getByRole('heading').first().textContent()).toBe(title);
    await shared.keyboard.press('Escape');
    await expect.poll(() => shared.url()).not.toContain('entry=');
    expect(await shared.getByText('Page 2 of').count()).toBe(1);
  });

  test('a detail shows each path with its words compared, the document before and after, and the JSON as it was written', async () => {
    const { server, tenant, open } = the();
    await recordLife(server, tenant, { entity: 'note' }, [
      '{"text":"Ships within three days, to the EU only.","price":1.10}',
      '{"text":"Ships within two days, to the EU and Norway.","price":1E400,"10":-0,"2":9007199254740993}',
    ]);
    const page = await open('history?q=entity%3Anote+type%3Aupdate');
    await page.locator('.entry-link').click();
    const panel = page.getByRole('complementary');
    await panel.getByRole('heading', { name: 'price' }).waitFor();
    expect(await panel.locator('mark').allInnerTexts()).toEqual(['three', 'only', 'two', 'and Norway']);
    for (const text of ['1.10', '1E400', '-0', '9007199254740993'])
      await panel.getByText(text, { exact: true }).waitFor();
    await panel.getByRole('button', { name: 'Before and after' }).click();
    await panel.getByText('1.10', { exact: true }).waitFor();
    // Members stand in the order of the document, which is not that of JavaScript.
    await panel.getByRole('button', { name: 'JSON', exact: true }).click();
    const json = await panel.locator('.lines-view').textContent();
    expect(json).toContain('"after": 1E400');
    expect(json).toContain('"after": 9007199254740993');
    await panel.getByRole('link', { name: 'Robin' }).click();
    await page.getByRole('heading', { name: 'Robin' }).waitFor();
  });

  test('an empty result says why, and widens the time to where something is', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    await recordLife(server, tenant, { entity: 'fossil', from: Date.now() - 200 * 86_400_000 }, ['{"age":1}']);
    const page = await open('history?q=entity%3Afossil');
    await page.getByText('A query without a from-bound looks at the last 30 days').waitFor();
    await checkAccessibility(page);
    await page.getByRole('button', { name: 'Show 1 change of all time' }).click();
    await page.locator('.entry-row').waitFor();
    expect(await page.getByRole('combobox', { name: 'Query' }).inputValue()).toBe(
      'entity:fossil occurredAt:>="1970-01-01T00:00:00Z"',
    );
  });

  test('what is recorded meanwhile is told on top, and nothing moves before one asks for it', async () => {
    const { server, tenant, open } = the();
    await recordLife(server, tenant, { entity: 'ticker' }, ['{"n":1}']);
    const page = await open('history?q=entity%3Aticker', { unshared: true });
    await page.clock.install();
    await page.reload();
    await page.locator('.entry-row').waitFor();
    await recordLife(server, tenant, { entity: 'ticker', before: '{"n":1}', from: Date.now() }, ['{"n":2}']);
    await expect
      .poll(async () => {
        await page.clock.runFor(10_000);
        return await page.locator('.new-entries').textContent();
      })
      .toBe('1 new change');
    expect(await page.locator('.entry-row').count()).toBe(1);
    await page.getByRole('button', { name: '1 new change' }).click();
    await expect.poll(() => page.locator('.entry-row').count()).toBe(2);
  });

  test('the month before this one is two clicks away, and its export runs as a job whose file is downloaded', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('history?q=type%3Adelete');
    await totalOf(page);
    await page.getByRole('button', { name: 'Days…' }).click();
    const first = await page.getByLabel('First day').inputValue();
    const last = await page.getByLabel('Last day').inputValue();
    const show = page.getByRole('dialog').getByRole('button', { name: 'Show' });
    await page.getByLabel('Last day').fill('2000-01-01');
    await page.getByText('The last day is before the first.').waitFor();
    expect(await show.isDisabled()).toBe(true);
    await checkAccessibility(page, 'dialog');
    await page.getByLabel('Last day').fill(last);
    await show.click();
    const behind = new Date(Date.parse(last) + 86_400_000).toISOString().slice(0, 10);
    expect([first, behind]).toEqual([expect.stringMatching(/-01$/), expect.stringMatching(/-01$/)]);
    await expect
      .poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue())
      .toBe(`type:delete occurredAt:(>="${first}T00:00:00Z" AND <"${behind}T00:00:00Z")`);
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    await page.getByLabel('Format').selectOption('NDJSON');
    const start = page.getByRole('button', { name: /^Export \d+ entr(y|ies)$/ });
    const total = Number((await start.textContent())?.replace(/\D/g, ''));
    expect(total).toBeGreaterThan(0);
    await start.click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ]);
    const lines = (await readFile(await download.path(), 'utf8')).trim().split('\n');
    expect(lines).toHaveLength(total);
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ type: 'delete' });
  });

  test('times are those of the reader or UTC, as one chooses', async () => {
    const page = await the().open('history?q=type%3Adelete');
    const first = page.locator('.entry-row time').first();
    await first.waitFor();
    const at = new Date((await first.getAttribute('datetime')) ?? '');
    const clock = (timeZone: string) => new Intl.DateTimeFormat('sv-SE', { timeZone, timeStyle: 'medium' }).format(at);
    expect(await first.textContent()).toBe(clock('Europe/Berlin'));
    await page.getByRole('button', { name: 'UTC' }).click();
    expect(await first.textContent()).toBe(clock('UTC'));
  });

  test('names and values with markup, addresses and marks of direction stay text', async () => {
    const { server, tenant, open } = the();
    const attack = `<img src=x onerror="document.title='owned'"><style>*{display:none}</style>`;
    const actor = `Eve\u202e ${attack}`.slice(0, 190);
    const related = [{ entity: attack.slice(0, 60), entityId: '"><svg onload=alert(1)>' }];
    await recordLife(
      server,
      tenant,
      { entity: 'attack', entityId: attack, actor, name: 'javascript:alert(1)', related },
      [
        JSON.stringify({
          [attack]: 'javascript:alert(1)',
          text: '</script><script>alert(1)</script>',
          mark: 'user\u202etxt.exe',
        }),
      ],
    );
    const page = await open('history?q=entity%3Aattack');
    await page.locator('.entry-link').click();
    const panel = page.getByRole('complementary');
    await panel.getByText('</script><script>alert(1)</script>').waitFor();
    await panel.getByText('U+202E').first().waitFor();
    for (const link of await page.locator('a[href]').all())
      expect(await link.getAttribute('href')).not.toMatch(/^\s*javascript:/i);
    expect(await page.locator('main img, main style, main script, aside img, aside script').count()).toBe(0);
    expect(await page.title()).toBe('History · Annals');
    await panel.getByRole('link', { name: /^Eve/ }).click();
    await page.locator('h1', { hasText: 'Eve' }).waitFor();
    expect(await page.locator('h1 bdi').count()).toBe(1);
  });

  test('a page of entries with 1,000 paths each, and one of long values, have few elements', async () => {
    const { server, tenant, open } = the();
    const wide = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, index) => [`field${index}`, `value ${index} ${'x'.repeat(40)}`]),
    );
    const versions = Array.from({ length: 9 }, (_, n) => JSON.stringify(n % 2 === 0 ? { ...wide, n } : { n }));
    versions.push(JSON.stringify({ ...wide, big: 'lorem '.repeat(200_000) }));
    await recordLife(server, tenant, { entity: 'wide' }, versions);
    const page = await open('history?q=entity%3Awide');
    await expect.poll(() => page.locator('.entry-row').count()).toBe(10);
    expect(await page.locator('.history-entries *').count()).toBeLessThan(10 * 60);
    await page.locator('.entry-link').first().click();
    const panel = page.getByRole('complementary');
    await panel.locator('.path-item').first().waitFor();
    expect(await panel.locator('.path-item').count()).toBeLessThan(200);
    await panel.getByRole('button', { name: 'JSON', exact: true }).click();
    await panel.locator('.lines-view .line').first().waitFor();
    expect(await panel.locator('.lines-view .line').count()).toBeLessThan(120);
  });

  test('on a narrow screen everything is there and nothing scrolls sideways', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('history?q=entity%3Acoupon+type%3Adelete', { width: 380, height: 760 });
    await page.locator('.entry-row').first().waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: 'History' }).waitFor();
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.locator('.entry-link').first().click();
    await page.getByRole('complementary').getByText('Who').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
  });
}

/** The pixels that a page is wider than its window. */
export async function sidewaysRoom(page: Page): Promise<number> {
  return await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

async function totalOf(page: Page): Promise<number> {
  const total = page.locator('.history-total');
  await expect.poll(() => total.textContent()).toMatch(/^[\d,]+$/);
  return Number((await total.textContent())?.replaceAll(',', ''));
}

async function chips(page: Page): Promise<string[]> {
  return (await page.locator('.chip').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ').trim());
}

async function facetCounts(page: Page, title: string): Promise<[string, number][]> {
  const facet = page.locator('.facet', { hasText: title });
  await facet.locator('.facet-value').first().waitFor();
  const texts = await facet
    .locator('.facet-value')
    .evaluateAll((values) =>
      values.map((value) => [
        value.querySelector('.facet-text')?.textContent ?? '',
        value.querySelector('.facet-count')?.textContent ?? '',
      ]),
    );
  return texts.map(([name = '', count = '']) => [name.replace(/^[+~−]/, ''), Number(count.replaceAll(',', ''))]);
}
