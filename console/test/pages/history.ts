import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { chips, facetCounts, totalOf } from '../support/history-page.ts';
import { sidewaysRoom, waitForQuiet } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';

/** What a person finds on the History page. */
export function historyTests(the: () => ConsoleUnderTest): void {
  test('numbers and dates have the form of the browser, though words are English', async () => {
    const { open, server } = the();
    const page = await open('history');
    const total = await totalOf(page);
    const browser = page.context().browser();
    if (browser === null) throw new Error('the page has no browser');
    await using context = await browser.newContext({ locale: 'de-DE', timezoneId: 'Europe/Berlin' });
    await context.addCookies(await page.context().cookies());
    const german = await context.newPage();
    await german.goto(`${server.baseUrl}/console/history`);
    await expect.poll(() => german.locator('.history-total').textContent()).toBe(total.toLocaleString('de-DE'));
    expect(total).toBeGreaterThan(1_000);
    await expect
      .poll(() => german.locator('.entry-day').first().textContent())
      .toMatch(/^\p{L}+tag, \d+\. \p{L}+ \d{4}$|^Mittwoch, /u);
    await expect.poll(() => german.locator('.history-chart header').textContent()).toMatch(/\d\d\.\d\d\.\d{4} – /);
    await expect.poll(() => page.locator('.history-chart header').textContent()).toMatch(/\d\d\/\d\d\/\d{4} – /);
  });

  test('the total, the chart, the facets and the list say the same', async () => {
    const { open } = the();
    const page = await open('history');
    const total = await totalOf(page);
    expect(total).toBeGreaterThan(1_000);
    const types = await facetCounts(page, 'Type');
    expect(types.map(([name]) => name).toSorted()).toEqual(['create', 'delete', 'update']);
    expect(types.reduce((sum, [, count]) => sum + count, 0)).toBe(total);
    await expect.poll(() => page.locator('.entries-footer').textContent()).toContain(total.toLocaleString('en'));
    await expect.poll(() => entriesOf(page)).toBe(50);
    await page.locator('.bar-chart canvas').waitFor();
    // A click on a facet writes the query, and the way back leads to what was there.
    const [, deletes = 0] = types.find(([name]) => name === 'delete') ?? [];
    await page.locator('.facet', { hasText: 'Type' }).getByRole('button', { name: 'delete' }).click();
    await expect.poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue()).toBe('type:delete');
    await expect.poll(() => totalOf(page)).toBe(deletes);
    await page.goBack();
    await expect.poll(() => totalOf(page)).toBe(total);
  });

  test('pages keep the query, and j, k and Enter lead to a detail that has an address of its own', async () => {
    const { open } = the();
    const page = await open('history?q=entity%3Aproduct');
    const firstEntry = async () =>
      /entry=([^&]+)/.exec((await page.locator('.entry-link').first().getAttribute('href')) ?? '')?.[1];
    const newest = await firstEntry();
    expect(newest).toBeDefined();
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByText('Page 2 of').waitFor();
    // The number of the page changes before its entries are there, and then what has the focus is gone.
    await expect.poll(firstEntry).not.toBe(newest);
    await expect.poll(() => chips(page)).toEqual(['entity product']);
    await expect.poll(() => page.locator('.entry-row').count()).toBeGreaterThan(2);
    // Enter on the heading of a group would open the group.
    const grouped = page.getByRole('checkbox', { name: 'Group' });
    if ((await grouped.count()) > 0) await grouped.uncheck();
    for (const key of ['j', 'j', 'k', 'Enter']) await page.keyboard.press(key);
    const panel = page.getByRole('complementary');
    await panel.getByText('Who').waitFor();
    const title = await panel.getByRole('heading').first().textContent();
    await page.reload();
    await panel.getByText('Who').waitFor();
    await expect.poll(() => panel.getByRole('heading').first().textContent()).toBe(title);
    await page.keyboard.press('Escape');
    await expect.poll(() => page.url()).not.toContain('entry=');
    await page.getByText('Page 2 of').waitFor();
  });

  test('an empty result says why, and widens the time to where something is', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    await recordLife(server, tenant, { entity: 'fossil', from: Date.now() - 200 * 86_400_000 }, ['{"age":1}']);
    const page = await open('history?q=entity%3Afossil');
    await page.getByText('A query without a beginning looks at the last 30 days').waitFor();
    await checkAccessibility(page);
    await page.getByRole('button', { name: 'Show 1 change of all time' }).click();
    await page.locator('.entry-row').waitFor();
    await expect
      .poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue())
      .toBe('entity:fossil occurredAt:>="1970-01-01T00:00:00Z"');
  });

  test('the month before this one is two clicks away, and its export runs as a job whose file is downloaded', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('history?q=type%3Adelete');
    await totalOf(page);
    await page.getByRole('button', { name: 'Days…' }).click();
    const first = await page.getByLabel('First day').inputValue();
    const last = await page.getByLabel('Last day').inputValue();
    await page.getByText('Days and times are those of Europe/Berlin.').waitFor();
    const show = page.getByRole('dialog').getByRole('button', { name: 'Show' });
    await page.getByLabel('Last day').fill('2000-01-01');
    await page.getByText('The end is before the beginning.').waitFor();
    await expect.poll(() => show.isDisabled()).toBe(true);
    await checkAccessibility(page, 'dialog');
    await page.getByLabel('Last day').fill(last);
    await show.click();
    const behind = new Date(Date.parse(last) + 86_400_000).toISOString().slice(0, 10);
    expect([first, behind]).toEqual([expect.stringMatching(/-01$/), expect.stringMatching(/-01$/)]);
    await expect
      .poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue())
      .toBe(`type:delete occurredAt:(>="${midnightOf(first)}" AND <"${midnightOf(behind)}")`);
    // The total of the query before stays until that of this one is there.
    await waitForQuiet(page);
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    await page.getByLabel('Format').selectOption('NDJSON');
    const start = page.getByRole('button', { name: /^Export \d+ changes?$/ });
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

  test('today and yesterday, and a time with hours, are those of the clock that one has chosen, in the chart too', async () => {
    const { open } = the();
    const page = await open('history?q=entity%3Aorder');
    await totalOf(page);
    const query = page.getByRole('combobox', { name: 'Query' });
    const yesterday = page.getByRole('button', { name: 'Yesterday' });
    await yesterday.click();
    await expect
      .poll(() => query.inputValue())
      .toMatch(/^entity:order occurredAt:\(>="\S+T00:00:00\+0[12]:00" AND <"\S+T00:00:00\+0[12]:00"\)$/);
    await expect.poll(() => yesterday.getAttribute('aria-pressed')).toBe('true');
    await page.getByRole('button', { name: 'UTC' }).click();
    await expect.poll(() => yesterday.getAttribute('aria-pressed')).toBe('false');
    await page.getByRole('button', { name: 'Today' }).click();
    await expect.poll(() => query.inputValue()).toMatch(/^entity:order occurredAt:>="\S+T00:00:00Z"$/);

    await page.getByRole('button', { name: 'Days…' }).click();
    for (const [label, value] of [
      ['First day', '2026-01-05'],
      ['From', '14:30'],
      ['Last day', '2026-01-05'],
      ['Until', '18:00'],
    ] as const)
      await page.getByLabel(label, { exact: true }).fill(value);
    await page.getByRole('dialog').getByRole('button', { name: 'Show' }).click();
    await expect
      .poll(() => query.inputValue())
      .toBe('entity:order occurredAt:(>="2026-01-05T14:30:00Z" AND <"2026-01-05T18:00:00Z")');

    // A bar is a day of the chosen clock: what one bar holds is what the list of that day holds.
    for (const [zone, midnight] of [
      ['Local time', /T00:00:00\+0[12]:00/g],
      ['UTC', /T00:00:00Z/g],
    ] as const) {
      await page.getByRole('button', { name: zone }).click();
      // Of 30 days the bars are halves of days where the first hours have no entry.
      const since = new Date(Date.now() - 40 * 86_400_000).toISOString();
      await query.fill(`entity:order occurredAt:>="${since}"`);
      await query.press('Enter');
      // The chart of the shorter time, whose bars are minutes or hours, stays until this one is there.
      await page.locator('.history-chart header').getByText('per day').waitFor();
      await page.locator('.bar-chart canvas').waitFor();
      await page.getByRole('application').focus();
      for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowLeft']) await page.keyboard.press(key);
      const readout = page.locator('.bar-chart-readout');
      await expect.poll(() => readout.textContent()).toMatch(/^[\d/]+ {3}[\d,]+/);
      const [, day = '', count = ''] = /^(\S+) {3}([\d,]+)/.exec((await readout.textContent()) ?? '') ?? [];
      await page.keyboard.press('Enter');
      await expect.poll(() => query.inputValue()).toContain(`>="${day.split('/').toReversed().join('-')}T00:00:00`);
      expect((await query.inputValue()).match(midnight)).toHaveLength(2);
      await expect.poll(() => totalOf(page)).toBe(Number(count.replaceAll(',', '')));
    }
  });

  test('times are those of the reader or UTC, and on a narrow screen everything is there and nothing scrolls sideways', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('history?q=entity%3Acoupon+type%3Adelete');
    const first = page.locator('.entry-row time').first();
    await first.waitFor();
    const at = new Date((await first.getAttribute('datetime')) ?? '');
    const clock = (timeZone: string) => new Intl.DateTimeFormat('sv-SE', { timeZone, timeStyle: 'medium' }).format(at);
    await expect.poll(() => first.textContent()).toBe(clock('Europe/Berlin'));
    await page.getByRole('button', { name: 'UTC' }).click();
    await expect.poll(() => first.textContent()).toBe(clock('UTC'));
    await page.setViewportSize({ width: 380, height: 760 });
    await expect.poll(() => sidewaysRoom(page)).toBe(0);
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: 'History' }).waitFor();
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.locator('.entry-link').first().click();
    await page.getByRole('complementary').getByText('Who').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
  });
}

/** How many entries the list shows, each or in groups. */
async function entriesOf(page: Page): Promise<number> {
  const groups = await page.locator('.entry-group-toggle strong').allInnerTexts();
  const inGroups = groups.reduce((sum, text) => sum + Number.parseInt(text, 10), 0);
  return (await page.locator('.entry-row').count()) + inGroups;
}

/** The midnight at which a day begins in Berlin. */
function midnightOf(day: string): string {
  const noon = new Date(`${day}T12:00:00Z`);
  const offset = new Intl.DateTimeFormat('en', { timeZone: 'Europe/Berlin', timeZoneName: 'longOffset' })
    .formatToParts(new Date(noon.getTime() - 12 * 3_600_000))
    .find(({ type }) => type === 'timeZoneName')
    ?.value.slice('GMT'.length);
  return `${day}T00:00:00${offset}`;
}
