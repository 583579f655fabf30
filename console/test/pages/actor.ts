import { expect, test } from 'vitest';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { chips, facetCounts, totalOf } from '../support/history-page.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';

/** So many days ago in Berlin, milliseconds since 1970. */
function quarterPastMidnight(days: number): number {
  const clock = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Berlin', dateStyle: 'short', timeStyle: 'short' });
  const today = Date.parse(`${clock.format(Date.now()).slice(0, 10)}T00:15:00Z`);
  const wanted = today - days * 86_400_000;
  const offsets = [1, 2].map((hours) => wanted - hours * 3_600_000);
  return offsets.find((at) => clock.format(at).endsWith(' 00:15')) ?? wanted;
}

/** What a person does on the page of an actor. */
export function actorTests(the: () => ConsoleUnderTest): void {
  test('what an actor did is there by day, by type and by entity, and one of it in full', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    await recordLife(server, tenant, { entity: 'desk', actor: 'Doe, Jane' }, [
      '{"a":1}',
      '{"a":2}',
      '{"a":3}',
      undefined,
    ]);
    const page = await open(`actor?${new URLSearchParams({ name: 'Doe, Jane' })}`);
    await page.getByRole('heading', { name: 'Doe, Jane' }).waitFor();
    await expect.poll(() => page.locator('.history-total').textContent()).toBe('4');
    const types = page.locator('.facet', { hasText: 'By type' });
    await expect.poll(() => types.locator('.facet-count').allInnerTexts()).toEqual(['2', '1', '1']);
    await checkAccessibility(page);
    await types.getByRole('button', { name: 'update' }).click();
    await expect.poll(() => page.locator('.entry-row').count()).toBe(2);
    await page.locator('.entry-link').first().click();
    await page.getByRole('complementary').getByRole('heading', { name: 'a', exact: true }).waitFor();
    await page.getByRole('link', { name: 'In the history' }).click();
    await expect
      .poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue())
      .toBe('actor:"Doe, Jane" type:update');
  });

  test('a wrong query is reported once, in one sentence', async () => {
    const page = await the().open('actor?name=Jane+Doe&q=colour%3Ared', { statuses: [400] });
    const alert = page.getByRole('main').getByRole('alert');
    await alert.waitFor();
    expect(await alert.locator('p').allTextContents()).toEqual([
      expect.stringMatching(/^Unsupported query field: colour; expected entity, .*, found "colour"\.$/),
    ]);
    // Nothing looks as if more were to come.
    expect(await page.locator('.skeleton').count()).toBe(0);
  });

  test('an actor who did nothing lately says why the page is empty', async () => {
    const page = await the().open('actor?name=No+One', { width: 380, height: 760 });
    await page.getByText('looks at the last 30 days').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
  });

  test('a person has one page under all names, a calendar, and is found by a name of before', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const life = { entity: 'zoe', who: { actorId: 'p-1' }, context: '{"ip":"203.0.113.9"}' };
    // A quarter past midnight by the clock of the page, on another side of the summer for half of the year.
    const long = quarterPastMidnight(100);
    await recordLife(server, tenant, { ...life, entityId: '1', actor: 'Zoe Old', from: long }, ['{"a":1}', '{"a":2}']);
    await recordLife(server, tenant, { ...life, entityId: '2', actor: 'Zoe New' }, ['{"a":1}']);
    // Another person of that name.
    const other = { entity: 'zoe', entityId: '3', actor: 'Zoe New', who: { actorId: 'p-2' } };
    await recordLife(server, tenant, other, ['{"a":1}']);

    const page = await open('people');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search everything' }).fill('zoe o');
    await page.getByRole('option', { name: /^Zoe New.*p-1, 3 changes/s }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('searchbox', { name: 'Name or id begins with' }).fill('zoe o');
    await page.getByRole('main').getByRole('button', { name: 'Search' }).click();
    await page.getByText('1 person').waitFor();
    await expect
      .poll(() => page.locator('tbody td').allInnerTexts())
      .toEqual(['Zoe New (p-1)', 'Zoe Old', '3', expect.any(String)]);
    await checkAccessibility(page);
    await page.setViewportSize({ width: 380, height: 760 });
    await expect.poll(() => sidewaysRoom(page)).toBe(0);
    await page.getByRole('searchbox', { name: 'Name or id begins with' }).fill('nobody of that name');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'No person matches' }).waitFor();
    await page.goBack();
    await page.getByRole('link', { name: 'Zoe New (p-1)' }).click();

    await page.getByRole('heading', { name: 'Zoe New (p-1)', level: 1 }).waitFor();
    await expect.poll(() => totalOf(page)).toBe(3);
    const names = page.getByRole('region', { name: 'Names' }).locator('tbody td:first-child');
    await expect.poll(() => names.allInnerTexts()).toEqual(['Zoe New', 'Zoe Old']);
    await page.getByText('Active on 2 days of the last year').waitFor();
    await expect.poll(() => sidewaysRoom(page)).toBe(0);
    await page.setViewportSize({ width: 1_280, height: 860 });
    await checkAccessibility(page);
    // Today has the focus first, and the keyboard goes from day to day: up and left.
    await page.locator('.activity-day[tabindex="0"]').focus();
    for (const key of [...Array(14).fill('ArrowLeft'), 'ArrowUp', 'ArrowUp']) await page.keyboard.press(key);
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.getAttribute('aria-label')))
      .toMatch(/^\w+day,? \d+ \w+ \d+: 2 changes$/);
    await page.keyboard.press('Enter');
    await expect.poll(() => totalOf(page)).toBe(2);
    await expect.poll(() => chips(page)).toEqual([expect.stringMatching(/^occurredAt from .*, before /)]);
    await names.getByRole('link', { name: 'Zoe Old' }).click();
    const query = page.getByRole('combobox', { name: 'Query' });
    await expect.poll(() => query.inputValue()).toBe('actorId:p-1 actor:Zoe Old occurredAt:>="1970-01-01T00:00:00Z"');
    await expect.poll(() => totalOf(page)).toBe(2);
  });

  test('two people of one name are told apart on the page of the name, and beside the history', async () => {
    const { server, tenant, open } = the();
    const life = { entity: 'twins', actor: 'Twin' };
    const onBehalfOf = { name: 'Acme Ltd' };
    await recordLife(server, tenant, { ...life, entityId: '1', who: { actorId: 't-1' } }, ['{"a":1}', '{"a":2}']);
    await recordLife(server, tenant, { ...life, entityId: '2', who: { actorId: 't-2', onBehalfOf } }, ['{"a":1}']);
    const page = await open('actor?name=Twin');
    await expect
      .poll(() => facetCounts(page, 'By person'))
      .toEqual([
        ['Twin (t-1)', 2],
        ['Twin (t-2)', 1],
      ]);
    await page.getByRole('button', { name: 'Twin (t-2)' }).click();
    await expect.poll(() => totalOf(page)).toBe(1);
    await page.getByRole('link', { name: 'In the history' }).click();
    const query = page.getByRole('combobox', { name: 'Query' });
    await expect.poll(() => query.inputValue()).toBe('actor:Twin actorId:t-2');
    await page.getByRole('button', { name: 'Twin (t-2)' }).waitFor();
    expect(await page.getByRole('button', { name: 'Twin (t-2)' }).getAttribute('aria-pressed')).toBe('true');
    await page.getByRole('button', { name: 'Acme Ltd' }).click();
    await expect.poll(() => query.inputValue()).toBe('actor:Twin actorId:t-2 onBehalfOf:Acme Ltd');
  });
}
