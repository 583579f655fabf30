import { expect, test } from 'vitest';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';

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
}
