import { expect, test } from 'vitest';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { chips, facetCounts, totalOf } from '../support/history-page.ts';
import { sidewaysRoom, waitForQuiet } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';
import { goWithin } from '../support/windows.ts';

/** How a person asks on the History page. */
export function historyQueryTests(the: () => ConsoleUnderTest): void {
  test('a query is written with suggestions and the keyboard alone', async () => {
    const page = await the().open('history');
    await page.locator('.entry-row').first().waitFor();
    await page.getByRole('combobox', { name: 'Query' }).focus();
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
    const page = await the().open('history?q=entity%3Aorder+status%3AOPEN', { statuses: [400] });
    await page.getByRole('alert').getByText('Position 14: Unsupported query field: status;').waitFor();
    await expect.poll(() => page.locator('.query-token.fault').textContent()).toBe('s');
    // Nothing was looked for, so nothing else is said.
    await expect.poll(() => page.locator('.facet, .history-chart, .entry-row').count()).toBe(0);
    await page.getByRole('button', { name: 'Search for path:status' }).click();
    await expect
      .poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue())
      .toBe('entity:order path:status');
    await page.locator('.entry-row').first().waitFor();
    await expect.poll(() => chips(page)).toEqual(['entity order', 'path status']);
    // There is no path of this name, and none of a related item.
    for (const wrong of ['stat:OPEN', 'related:elemMatch(status:OPEN)']) {
      await goWithin(page, `history?${new URLSearchParams({ q: wrong })}`);
      await page.getByRole('alert').getByText('Unsupported query field').waitFor();
      await waitForQuiet(page);
      expect(await page.getByRole('button', { name: /^Search for path/ }).count()).toBe(0);
    }
  });

  test.for(['on', 'off'])(
    'a wrong query costs one request, and turns off what needs a right one (live %s)',
    async (live) => {
      const page = await the().open('connect', { statuses: [400] });
      const queries: string[] = [];
      page.on('request', (request) => {
        const { pathname, searchParams } = new URL(request.url());
        if (searchParams.has('q')) queries.push(pathname.split('/').at(-1) ?? '');
      });
      const buttons = ['Save view', 'Live', 'Export'].map((name) => page.getByRole('button', { name, exact: true }));
      const disabled = () => Promise.all(buttons.map((button) => button.isDisabled()));
      await goWithin(page, 'history?q=entity%3Aorder');
      await page.locator('.entry-row').first().waitFor();
      if (live === 'off') await page.getByRole('button', { name: 'Live' }).click();
      await expect.poll(() => page.locator('.facet-value, .bar-chart').count()).toBeGreaterThan(5);
      await waitForQuiet(page);
      expect(await disabled()).toEqual([false, false, false]);
      const count = queries.splice(0);
      expect(count).toEqual(expect.arrayContaining(['changelogs', 'histogram', 'facets']));

      // The fault before stays until the answer is there, so the request is what is waited for.
      const oneRequest = async () => {
        await expect.poll(() => queries.length).toBe(1);
        await waitForQuiet(page);
        expect(queries.splice(0)).toHaveLength(1);
      };
      for (const wrong of ['type:updated', 'occurredAt:yesterday', 'entity:(order']) {
        await goWithin(page, `history?${new URLSearchParams({ q: wrong })}`);
        await page.getByRole('alert').waitFor();
        await expect.poll(disabled).toEqual([true, true, true]);
        await oneRequest();
        expect(await page.getByRole('button', { name: 'Live' }).getAttribute('aria-pressed')).toBe('false');
        expect(await page.locator('.chip, .facet, .history-chart, .live-line').count()).toBe(0);
        await page.getByRole('button', { name: 'Refresh' }).click();
        await oneRequest();
        await page.getByRole('alert').waitFor();
      }
      // The same holds for what an address adds to an actor.
      await goWithin(page, 'actor?name=Jane+Doe&q=type%3Aupdated');
      await page.getByText('as the value of type, found').first().waitFor();
      expect(queries.splice(0)).toEqual(['changelogs']);
      await goWithin(page, 'history?q=type%3Aupdate');
      await page.locator('.entry-row').first().waitFor();
      await expect.poll(disabled).toEqual([false, false, false]);
      expect(await page.getByRole('button', { name: 'Live' }).getAttribute('aria-pressed')).toBe(String(live === 'on'));
      await expect.poll(() => page.locator('.history-chart .bar-chart').count()).toBe(1);
      await page.evaluate(() => localStorage.clear());
    },
  );

  test('a typed word that is no query is reported once, in one sentence that says what to type, and offers what it finds', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    await recordLife(server, tenant, { entity: 'mug', entityId: 'm-1', name: 'Large mug', actor: 'Mug Maker' }, [
      '{"mug":1}',
    ]);
    const page = await open('connect', { statuses: [400] });
    const query = page.getByRole('combobox', { name: 'Query' });
    // What is written as soon as the field is there stays.
    await page.evaluate(() => {
      new MutationObserver((_changes, observer) => {
        const field = document.querySelector<HTMLInputElement>('input[aria-label=Query]');
        if (field === null) return;
        observer.disconnect();
        field.focus();
        field.value = 'mug';
        field.dispatchEvent(new Event('input', { bubbles: true }));
      }).observe(document.body, { childList: true, subtree: true });
    });
    await page.getByRole('link', { name: 'History' }).click();
    await page.locator('.entry-row').first().waitFor();
    expect(await query.inputValue()).toBe('mug');
    await page.keyboard.press('Enter');
    const fault = page.getByRole('alert');
    await fault.waitFor();
    await expect
      .poll(() => fault.allInnerTexts())
      .toEqual([
        'This is no query. Write a field, a colon and a value, such as entity:order, actor:Jane Doe or type:update, or choose what you mean below.',
      ]);
    expect(await page.getByText(/fault|expected|position/i).count()).toBe(0);
    const offered = page.locator('.found-words');
    await offered.getByRole('link', { name: 'Mug Maker' }).waitFor();
    await expect
      .poll(() => offered.getByRole('heading').allInnerTexts())
      .toEqual(['Documents', 'People and systems', 'Types of documents', 'Fields']);
    await checkAccessibility(page);
    await offered.getByRole('link', { name: 'Large mug' }).click();
    await page.getByRole('heading', { name: 'mug m-1' }).waitFor();
    await page.goBack();
    await fault.waitFor();
    // Where the service's message and its detail say the same, it is said once.
    await query.fill('type:updated');
    await page.keyboard.press('Enter');
    await expect
      .poll(() => fault.allInnerTexts())
      .toEqual([
        'Position 6: Expected create, update or delete, or a list of them in parentheses, as the value of type, found "updated".',
      ]);
  });

  test('a word inside a long value is one more Enter away, is marked where it is, and stays within what a reader sees', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const around = 'We called back and nobody answered.\\n'.repeat(30);
    const noteOf = (word: string) => `{"note":"${around}${word} (late)${around}","price":"x"}`;
    const from = Date.now() - 90 * 86_400_000;
    await recordLife(
      server,
      tenant,
      { entity: 'complaint', entityId: 'k-1', before: '{"note":"","price":"x"}', from },
      [noteOf('Kulanz')],
    );
    await recordLife(server, tenant, { entity: 'complaint', entityId: 'k-2', from }, [noteOf('Kulanz'), '{}']);
    await recordLife(server, tenant, { entity: 'complaint', entityId: 'k-3' }, [noteOf('kulanz')]);
    await recordLife(server, tenant, { entity: 'secret', entityId: 'k-4' }, ['{"price":"Kulanz (late)"}']);
    const page = await open('history', { statuses: [400], width: 390 });
    const query = page.getByRole('combobox', { name: 'Query' });
    await page.locator('.entry-row').first().waitFor();
    await query.fill('Kulanz (late)');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Search for this text in all changes' }).waitFor();
    await checkAccessibility(page);
    expect(await sidewaysRoom(page)).toBe(0);
    await page.keyboard.press('Enter');
    await page.getByText('The search is case-sensitive.').waitFor();
    await expect.poll(() => totalOf(page)).toBe(4);
    expect(await query.inputValue()).toContain('occurredAt:>="1970-01-01T00:00:00Z"');
    const marks = () =>
      page.evaluate(() =>
        [...(CSS.highlights.get('found') ?? [])].map((range) => (range instanceof Range ? range.toString() : '')),
      );
    await expect.poll(marks).toEqual(Array.from({ length: 4 }, () => 'Kulanz (late)'));
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    // In the opened change too, however long the value is.
    await page.locator('.entry-link', { hasText: 'k-1' }).click();
    await page.locator('.side-panel .path-item').first().waitFor();
    await expect.poll(async () => (await marks()).length).toBe(5);
    await page.keyboard.press('Escape');

    // The search of everything offers the same, for what it does not know.
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.side-panel').count()).toBe(0);
    await page.locator('main').focus();
    await page.keyboard.press('/');
    await page.getByRole('combobox', { name: 'Search everything' }).fill('Kulanz (late)');
    await page.getByRole('option', { name: 'Search for this text in all changes' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await expect.poll(() => totalOf(page)).toBe(4);
    // Another query has no marks.
    await query.fill('entity:complaint');
    await page.keyboard.press('Enter');
    await expect.poll(() => totalOf(page)).toBe(1);
    expect(await marks()).toEqual([]);

    const part = await open('history', { statuses: [400], query: 'entity:complaint' });
    await part.locator('.entry-row').first().waitFor();
    await part.getByRole('combobox', { name: 'Query' }).fill('Kulanz');
    await part.keyboard.press('Enter');
    await part.getByRole('button', { name: 'Search for this text in all changes' }).click();
    await expect.poll(() => totalOf(part)).toBe(3);
  });

  test('a drag over the chart narrows the time to the bars that it touched', async () => {
    // Bars are days: of 30 days they are halves of days where the first hours have no entry.
    const since = new Date(Date.now() - 40 * 86_400_000).toISOString();
    const page = await the().open(`history?q=${encodeURIComponent(`occurredAt:>="${since}"`)}`);
    const all = await totalOf(page);
    const plot = page.locator('.bar-chart .u-over');
    // What is still to come may move the chart, or draw it once more under the mouse.
    await waitForQuiet(page);
    const box = await plot.boundingBox();
    if (box === null) throw new Error('no chart');
    await page.mouse.move(box.x + box.width * 0.4, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 4 });
    // What is dragged over is shown before the button is released.
    const readout = page.locator('.bar-chart-readout');
    await expect.poll(() => readout.textContent()).toContain(' – ');
    const figures = (await readout.textContent()) ?? '';
    const [, first = '', last = '', dragged = ''] = /^(\S+) – (\S+) {3}([\d,]+) · /.exec(figures) ?? [];
    await page.mouse.up();
    await expect
      .poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue())
      .toMatch(/^occurredAt:\(>="\S+T00:00:00\+0[12]:00" AND <"\S+T00:00:00\+0[12]:00"\)$/);
    await expect.poll(() => totalOf(page)).toBeLessThan(all);
    await expect.poll(() => totalOf(page)).toBe(Number(dragged.replaceAll(',', '')));
    await expect.poll(() => page.locator('.history-chart header').textContent()).toContain(`· ${first}`);
    const dayOf = (text: string) => text.split('/').toReversed().join('-');
    expect(dayOf(last) > dayOf(first)).toBe(true);
    // A click takes one bar, and the keyboard can do the same.
    await waitForQuiet(page);
    const several = await totalOf(page);
    const bars = await plot.boundingBox();
    await page.mouse.click((bars?.x ?? 0) + (bars?.width ?? 0) / 2, (bars?.y ?? 0) + 40);
    await expect.poll(() => totalOf(page)).toBeLessThan(several);
    await waitForQuiet(page);
    const narrowed = page.url();
    await page.getByRole('application').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).not.toBe(narrowed);
  });
}
