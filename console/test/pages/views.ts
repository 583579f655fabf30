import { expect, test } from 'vitest';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { totalOf } from '../support/history-page.ts';
import { waitForQuiet } from '../support/page-measures.ts';

/** What a person does with saved views. */
export function viewTests(the: () => ConsoleUnderTest): void {
  test('a query with its time is saved under a name, and its address shows it to others', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const page = await open('history?q=entity%3Aproduct+path%3Aprice');
    await page.getByRole('button', { name: '7 d', exact: true }).click();
    await page.getByRole('button', { name: 'Save view' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    await page.keyboard.type('Price changes');
    await expect.poll(() => dialog.getByLabel('Time').locator('option:checked').textContent()).toBe('the last 7 days');
    await checkAccessibility(page, 'dialog');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Price changes' }).waitFor();
    await expect.poll(() => page.url()).toMatch(/history\?view=[\w-]+$/);
    // The total of the query before stays until that of this one is there.
    await waitForQuiet(page);
    const total = await totalOf(page);

    const shared = await open(page.url().split('/console/')[1] ?? '', {
      scope: 'changelog.changelog_read',
      width: 380,
    });
    await shared.getByRole('heading', { name: 'Price changes' }).waitFor();
    await expect.poll(() => totalOf(shared)).toBe(total);
    await expect
      .poll(() => shared.getByRole('combobox', { name: 'Query' }).inputValue())
      .toMatch(/^entity:product path:price occurredAt:>="/);
    // Who only reads can neither save nor edit.
    expect(await shared.getByRole('button', { name: 'Save view' }).count()).toBe(0);
    await shared.getByRole('button', { name: 'Menu' }).click();
    await shared.getByRole('link', { name: 'Price changes' }).waitFor();
    expect(await shared.getByRole('button', { name: 'Edit views' }).count()).toBe(0);

    // From the first page it is one click.
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('link', { name: 'Price changes' }).click();
    await page.getByRole('heading', { name: 'Price changes' }).waitFor();
    // Another query keeps the view's name, and may take its place.
    await page.getByRole('button', { name: 'All', exact: true }).click();
    await page.getByText('A saved view, with another query').waitFor();
    await page.getByRole('button', { name: 'Save view' }).click();
    await page.getByRole('button', { name: 'Change “Price changes”' }).click();
    await page.getByText('A saved view of all time').waitFor();
    const id = new URL(page.url()).searchParams.get('view');
    const token = await server.token(tenant, {});
    await server.call(`/changelog/${tenant}/views/${id}`, { token, method: 'DELETE' });
  });

  test('views are renamed, ordered and deleted, and the address of one that is gone says so', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const token = await server.token(tenant, { name: 'Robin Reader' });
    for (const [position, name] of ['First', 'Second'].entries()) {
      await server.call(`/changelog/${tenant}/views/${name.toLowerCase()}`, {
        token,
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name, q: 'entity:order', position: position - 10 }),
      });
    }
    const page = await open('history?q=entity%3Acoupon+type%3Adelete', { statuses: [409], fresh: true });
    const links = page.getByRole('list', { name: 'Saved views' }).getByRole('link');
    const names = async () => (await links.allTextContents()).slice(0, 2);
    await expect.poll(names).toEqual(['First', 'Second']);
    await page.getByRole('button', { name: 'Edit views' }).click();
    const dialog = page.getByRole('dialog', { name: 'Saved views' });
    await dialog.getByRole('button', { name: 'Move Second up' }).click();
    await expect.poll(names).toEqual(['Second', 'First']);
    await dialog.getByRole('button', { name: 'Rename First' }).click();
    await dialog.getByRole('textbox', { name: 'Name' }).fill('Orders');
    await checkAccessibility(page, 'dialog');
    await page.keyboard.press('Enter');
    await expect.poll(names).toEqual(['Second', 'Orders']);

    // Another client renames it: nothing is overwritten.
    await server.call(`/changelog/${tenant}/views/second`, {
      token,
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Theirs', q: 'entity:order' }),
    });
    await dialog.getByRole('button', { name: 'Move Second down' }).click();
    await dialog.getByText('Somebody else has changed this view.').waitFor();
    await expect.poll(names).toEqual(['Theirs', 'Orders']);

    await dialog.getByRole('button', { name: 'Delete Orders' }).click();
    await page.getByRole('dialog', { name: 'Delete the view?' }).getByRole('button', { name: 'Delete' }).click();
    await expect.poll(names).not.toContain('Orders');
    const gone = await open('history?view=first');
    await gone.getByText('This view is gone').waitFor();
    await gone.getByRole('link', { name: 'Who deleted it' }).click();
    await gone.locator('.entry-row').first().waitFor();
    await expect.poll(() => totalOf(gone)).toBe(3);
    await server.call(`/changelog/${tenant}/views/second`, { token, method: 'DELETE' });
  });
}
