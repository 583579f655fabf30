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
    const views = page.getByRole('group', { name: 'What is shown of the change' });
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

  test.each([
    ['all', 'Pam (u-5) on behalf of Acme Ltd', ['Type', 'Entity', 'Actor', 'Field', 'Person', 'On behalf of']],
    [true, 'Pam', ['Type', 'Entity', 'Actor', 'Field']],
    [false, '', ['Type', 'Entity', 'Field']],
  ] as const)('with actors: %s shows as much of who made changes', async (actors, who, facets) => {
    const { server, tenant, open, checkAccessibility } = the();
    const exactly = { actorId: 'u-5', onBehalfOf: { name: 'Acme Ltd' }, correlationId: 'one-batch' };
    const context = '{"ip":"203.0.113.5"}';
    const life = { entity: 'crate', entityId: `c-${actors}`, actor: 'Pam', context, who: exactly };
    await recordLife(server, tenant, life, ['{"weight":1}', '{"weight":2}']);
    const page = await open('history', {
      query: `entity:crate entityId:"c-${actors}"`,
      actors,
      // The overview cannot know before it has counted.
      statuses: actors === false ? [400] : [],
    });
    const group = page.getByRole('button', { name: /together/ });
    if (actors === 'all') await group.click();
    await expect.poll(() => page.locator('.entry-row').count()).toBe(2);
    await expect.poll(() => page.locator('.entry-row .entry-actor').first().textContent()).toBe(who);
    expect(await group.count()).toBe(actors === 'all' ? 1 : 0);
    await expect.poll(() => page.locator('.facet h2').allInnerTexts()).toEqual(facets);
    await page.locator('.entry-link').first().click();
    const facts = page.getByRole('complementary').locator('.facts');
    await facts.getByText('Document').waitFor();
    const others = actors === 'all' ? ' · with 1 other change' : '';
    await expect
      .poll(() => facts.locator('.who').allTextContents())
      .toEqual(actors === false ? [] : [`${who}${others}`]);
    await checkAccessibility(page, '.side-panel');
    if (actors !== false) {
      await facts.getByRole('link', { name: /^Pam/ }).click();
      await page.getByRole('heading', { level: 1, name: actors === 'all' ? 'Pam (u-5)' : 'Pam' }).waitFor();
      await expect.poll(() => page.locator('.history-total').textContent()).toBe('2');
    }
    await page.getByRole('link', { name: 'Overview', exact: true }).click();
    await page.getByRole('heading', { name: 'Busiest entities' }).waitFor();
    await expect
      .poll(() => page.getByRole('heading', { name: 'Busiest actors' }).count())
      .toBe(actors === false ? 0 : 1);
    expect(await page.locator('.failure').count()).toBe(0);
  });
}
