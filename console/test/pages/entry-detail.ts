import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { chips, facetCounts, totalOf } from '../support/history-page.ts';
import { recordLife } from '../support/record-life.ts';

/** What a person sees of one entry, with any values. */
export function entryDetailTests(the: () => ConsoleUnderTest): void {
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
    await expect.poll(() => panel.locator('mark').allInnerTexts()).toEqual(['three', 'only', 'two', 'and Norway']);
    for (const text of ['1.10', '1E400', '-0', '9007199254740993'])
      await panel.getByText(text, { exact: true }).waitFor();
    await panel.getByRole('button', { name: 'Before and after' }).click();
    await panel.getByText('1.10', { exact: true }).waitFor();
    // Members are in the order of the document, which is not that of JavaScript.
    await panel.getByRole('button', { name: 'JSON', exact: true }).click();
    const json = panel.locator('.lines-view');
    await expect.poll(() => json.textContent()).toContain('"after": 1E400');
    await expect.poll(() => json.textContent()).toContain('"after": 9007199254740993');
    await panel.getByRole('link', { name: 'Robin' }).click();
    await page.getByRole('heading', { name: 'Robin' }).waitFor();
  });

  test('a field of a change leads to its other changes, to those of its document, and to when it had the value', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const versions = ['1.50', '1.25', '2.00', '1.25'].map((price) => `{"parts":[{"price":${price}}]}`);
    await recordLife(server, tenant, { entity: 'vase', entityId: '1' }, versions);
    await recordLife(server, tenant, { entity: 'vase', entityId: '2' }, versions);
    const page = await open('history?q=entity%3Avase+entityId%3A1+type%3Aupdate');
    const query = page.getByRole('combobox', { name: 'Query' });
    await page.locator('.entry-link').first().click();
    const follow = async (link: string, expected: string, entries: number) => {
      const panel = page.getByRole('complementary');
      await panel.getByRole('link', { name: link }).waitFor();
      if (link.endsWith('value')) await checkAccessibility(page, '.side-panel');
      await panel.getByRole('link', { name: link }).click();
      await expect.poll(() => query.inputValue()).toContain(expected);
      await expect.poll(() => totalOf(page)).toBe(entries);
    };
    await follow('of this field of any vase', 'entity:vase path:parts.*.price', 8);
    await page.goBack();
    await follow('of this field of this document', 'entity:vase entityId:1 path:parts.0.price', 4);
    await page.goBack();
    await follow('when it had the new value', 'path:parts.0.price after:1.25', 3);
    await page.goBack();
    await follow('that made this field lower', 'change:elemMatch(path:parts.*.price is:lower)', 4);
    // The query is a chip like any other, and the facet of fields counts and writes it.
    await expect.poll(() => chips(page)).toEqual(['entity vase', 'change path:parts.*.price is:lower']);
    await expect.poll(() => facetCounts(page, 'Field')).toEqual([['parts.*.price', 4]]);
    await page.locator('.facet', { hasText: 'Field' }).getByRole('button').click();
    await expect.poll(() => query.inputValue()).toContain('path:parts.*.price');
    await expect.poll(() => totalOf(page)).toBe(4);
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
    await expect.poll(() => page.title()).toBe('History · Annals');
    await panel.getByRole('link', { name: /^Eve/ }).click();
    await page.locator('h1', { hasText: 'Eve' }).waitFor();
    await expect.poll(() => page.locator('h1 bdi').count()).toBe(1);
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

  test('the context of a change, and how it was recorded, are shown and exported to those who may read them, and to no others', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const life = { entity: 'parcel', context: '{"reason":"goodwill","price":1.10}' };
    await recordLife(server, tenant, life, ['{"weight":2}']);
    const page = await open('history?q=entity%3Aparcel');
    await page.locator('.entry-link').click();
    const facts = page.getByRole('complementary').locator('.facts');
    await facts.getByText('goodwill').waitFor();
    await facts.getByText('1.10', { exact: true }).waitFor();
    await facts.getByText('annals import').waitFor();
    await checkAccessibility(page, '.side-panel');
    await page.getByRole('complementary').getByRole('button', { name: 'JSON', exact: true }).click();
    const json = page.getByRole('complementary').locator('.lines-view');
    await expect.poll(() => json.textContent()).toContain('"recordedBy"');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    await page.getByLabel('With the context of each change').check();
    await page.getByRole('button', { name: 'Export 1 change' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ]);
    expect(await readFile(await download.path(), 'utf8')).toContain('"context":{"reason":"goodwill","price":1.10}');

    // For a spreadsheet: a row for each path, and a byte order mark unless one wants none.
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    await page.getByLabel('Format').selectOption('CSV field');
    expect(await page.getByLabel('With a byte order mark').isChecked()).toBe(true);
    await checkAccessibility(page, 'dialog');
    await page.getByRole('button', { name: 'Export 1 change' }).click();
    const [table] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ]);
    const csv = await readFile(await table.path(), 'utf8');
    expect(csv).toMatch(/^\ufeffat,type,[a-zA-Z,]+,pathNumber,path,before,after,actorId,/);

    const reader = await open('history?q=entity%3Aparcel', { scope: 'changelog.changelog_read' });
    await reader.locator('.entry-link').click();
    await reader.getByRole('complementary').getByText('Who').waitFor();
    await reader.getByRole('complementary').locator('.path-item').first().waitFor();
    expect(
      await reader
        .getByRole('complementary')
        .getByText(/goodwill|Recorded by/)
        .count(),
    ).toBe(0);
  });

  test('an id of any length leaves the header of the panel as it is', async () => {
    const { server, tenant, open } = the();
    const entityId = 'x'.repeat(300);
    await recordLife(server, tenant, { entity: 'lengthy', entityId }, ['{"n":1}']);
    const page = await open('history?q=entity%3Alengthy');
    for (const width of [1_280, 380]) {
      await page.setViewportSize({ width, height: 860 });
      await page.locator('.entry-link').click();
      const panel = page.getByRole('complementary');
      await panel.getByText('Who').waitFor();
      const header = await panel.locator('> header').boundingBox();
      expect(header?.height).toBeLessThan(90);
      const close = await panel.getByRole('button', { name: 'Close' }).boundingBox();
      expect((close?.x ?? 0) + (close?.width ?? width)).toBeLessThanOrEqual(width);
      // All of it is below.
      await panel.locator('.facts').getByText(`lengthy ${entityId}`).waitFor();
      await panel.getByRole('button', { name: 'Close' }).click();
    }
  });
}
