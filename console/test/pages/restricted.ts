import { expect, test } from 'vitest';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { recordLife } from '../support/record-life.ts';

/** A session that sees a part of the history. After each test no request of the page was refused. */
export function restrictedTests(the: () => ConsoleUnderTest): void {
  test.each([
    ['entity types', 'entity:parcel', ['Search', 'Before and after', 'Document']],
    ['documents that it names', 'entity:parcel entityId:p-1', ['Before and after', 'Document']],
    ['some changes', 'entity:parcel actor:Pam', []],
  ])('that sees %s is shown what it can use, and asks for nothing else', async (_what, query, has) => {
    const { server, tenant, open } = the();
    await recordLife(server, tenant, { entity: 'parcel', entityId: 'p-1', name: 'Parcel one', actor: 'Pam' }, [
      '{"price":1,"to":"Ann"}',
      '{"price":2,"to":"Bob"}',
    ]);
    const call = await caller(the());
    await call('PUT', '/changelog/demo/views/parcels', { name: 'Parcels', q: 'entity:parcel' });
    const page = await open('history', { query });
    const rows = page.locator('.entry-row');
    await expect.poll(() => rows.count()).toBeGreaterThanOrEqual(2);
    expect(await page.getByRole('button', { name: 'Live' }).count()).toBe(0);
    expect(await page.getByRole('link', { name: 'Parcels' }).count()).toBe(0);
    await page.getByRole('combobox', { name: 'Query' }).pressSequentially('entity:par');
    if (has.includes('Search')) await page.getByRole('option', { name: 'parcel' }).waitFor();
    await page.keyboard.press('Escape');

    await rows.first().click();
    const views = page.getByRole('group', { name: 'What is shown of the entry' });
    await views.waitFor();
    const whole = views.getByRole('button', { name: 'Before and after' });
    await expect.poll(() => whole.count()).toBe(has.includes('Before and after') ? 1 : 0);
    if ((await whole.count()) > 0) {
      await whole.click();
      await page.getByRole('heading', { name: 'After' }).waitFor();
      await page.getByText('********').first().waitFor();
    }
    await page.locator('.side-panel').getByRole('link', { name: 'parcel p-1' }).first().click();
    await page.getByRole('heading', { name: has.includes('Document') ? 'parcel p-1' : 'History' }).waitFor();

    // A shared address, and what the search finds. The narrowest sessions are refused most.
    if (has.length === 0) {
      await page.goto(`${server.baseUrl}/console/history?view=parcels`);
      await rows.first().waitFor();
    }
    await page.keyboard.press('Control+k');
    const search = page.getByRole('combobox', { name: 'Search everything' });
    await search.fill('parc');
    await page
      .getByRole('option', { name: /^parcel/ })
      .first()
      .waitFor();
    await page.keyboard.press('Escape');
    const pages = ['Overview', 'History', ...(has.includes('Document') ? ['Document'] : []), 'Connect', 'Data'];
    const navigation = page.getByRole('navigation', { name: 'Console' }).getByRole('link');
    await expect.poll(() => navigation.allInnerTexts()).toEqual(pages);
    for (const name of has.length === 0 ? pages : has.filter((path) => pages.includes(path))) {
      await page.getByRole('link', { name, exact: true }).click();
      await page.locator('h1, .empty-state h2, main h2').first().waitFor();
      await page.waitForLoadState('networkidle');
      expect([name, await page.locator('.failure').count()]).toEqual([name, 0]);
    }
  });
}
