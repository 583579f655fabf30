import { expect, test } from 'vitest';
import { startReceiver } from '../../../test/support/vendor/receiver.ts';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';
import { goWithin } from '../support/windows.ts';

/** What a person does with subscriptions. */
export function subscriptionTests(the: () => ConsoleUnderTest): void {
  test('a webhook is made of a query with its preview, its secret is shown once, and errors are under their fields', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    await recordLife(server, tenant, { entity: 'subscribed-parcel' }, ['{"n":1}', '{"n":2}']);
    const page = await open('subscriptions', { statuses: [400] });
    await page.getByText('There is no subscription yet').waitFor();
    await page.getByRole('button', { name: 'New subscription' }).first().click();
    const query = page.getByRole('combobox', { name: 'Query' });
    await query.fill('entity:subscribed-parcel');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByText('In the last 24 hours 2 changes match.').waitFor();
    const save = page.getByRole('button', { name: 'Save' });
    await save.click();
    await page.getByText('Give it a name.').waitFor();
    await page.getByText('Address is needed.').waitFor();
    await page.getByLabel('Name').fill('Parcels to the ERP');
    const address = page.getByLabel('Address');
    await address.fill('ftp://erp.example.com');
    const age = page.getByRole('textbox', { name: 'Maximum age' });
    await age.fill('a week');
    await save.click();
    await expect.poll(() => age.getAttribute('aria-invalid')).toBe('true');
    await age.fill('2');
    await page.getByRole('combobox', { name: 'Maximum age: unit' }).selectOption('weeks');
    await save.click();
    await expect.poll(() => address.getAttribute('aria-invalid')).toBe('true');
    await page.getByRole('button', { name: 'Add a header' }).click();
    await page.getByLabel('Name of header 1').fill('Authorization');
    await page.getByLabel('Value of header 1').fill('Bearer abc');
    await page.getByLabel('Actor details').selectOption('none');
    await checkAccessibility(page);
    await address.fill('https://erp.example.com/changes');
    await save.click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('It is shown only once').waitFor();
    await expect.poll(() => dialog.locator('code').textContent()).toMatch(/^whsec_/);
    await dialog.getByRole('button', { name: 'Copy the secret' }).waitFor();
    await checkAccessibility(page, 'dialog');
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('heading', { name: 'Parcels to the ERP' }).waitFor();
    expect(await page.getByRole('main').textContent()).not.toMatch(/whsec_|Bearer abc/);

    // What is stored and not shown stays when something else is changed.
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await expect.poll(() => page.getByLabel('Name of header 1').inputValue()).toBe('Authorization');
    expect([await age.inputValue(), await page.getByLabel('Maximum age: unit').inputValue()]).toEqual(['2', 'weeks']);
    expect(await page.getByLabel('Value of header 1').inputValue()).toBe('');
    expect(await page.getByLabel('Actor details').inputValue()).toBe('none');
    await page.getByLabel('Name', { exact: true }).fill('Parcels');
    await save.click();
    await page.getByRole('heading', { name: 'Parcels' }).waitFor();
    await page.getByText('Authorization').waitFor();
    const call = await caller(the());
    const listed: { actors?: unknown; name: string }[] = JSON.parse(
      await call('GET', `/changelog/${tenant}/subscriptions`),
    );
    expect(listed.find(({ name }) => name === 'Parcels')?.actors).toBe(false);
    await page.getByRole('button', { name: 'Delete the subscription' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There is no subscription yet').waitFor();
  });

  test('an alert warns before every change raises it, and has several recipients', async () => {
    const { tenant, open, checkAccessibility } = the();
    const page = await open('subscriptions/new', { width: 390, height: 844, statuses: [400] });
    await page.getByLabel('Kind of target').selectOption('email');
    const warning = page.getByRole('alert').filter({ hasText: 'every change of the tenant raises this alert' });
    await warning.waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    await page.getByLabel('Kind of target').selectOption('webhook');
    expect(await warning.count()).toBe(0);
    await page.getByLabel('Kind of target').selectOption('email');
    await page.getByRole('combobox', { name: 'Query' }).fill('entity:invoice type:delete');
    await page.keyboard.press('Escape');
    await expect.poll(() => warning.count()).toBe(0);
    await page.getByLabel('Name', { exact: true }).fill('Deleted invoices');
    const to = page.getByLabel('To', { exact: true });
    await to.fill('jane@shop.example, no address');
    await page.getByRole('button', { name: 'Save' }).click();
    await expect.poll(() => to.getAttribute('aria-invalid')).toBe('true');
    await to.fill('jane@shop.example, joe@shop.example;  ann@shop.example');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'Deleted invoices' }).waitFor();
    const shown = 'jane@shop.example, joe@shop.example, ann@shop.example';
    await page.getByRole('main').locator('dd').getByText(shown).waitFor();
    const call = await caller(the());
    const listed: { id: string; name: string; target: { to: unknown } }[] = JSON.parse(
      await call('GET', `/changelog/${tenant}/subscriptions`),
    );
    const alert = listed.find(({ name }) => name === 'Deleted invoices');
    expect(alert?.target.to).toEqual(shown.split(', '));
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await expect.poll(() => to.inputValue()).toBe(shown);
    await to.fill('jane@shop.example');
    await page.getByRole('button', { name: 'Save' }).click();
    const saved = async () => JSON.parse(await call('GET', `/changelog/${tenant}/subscriptions/${alert?.id}`));
    await expect.poll(async () => (await saved()).target.to).toBe('jane@shop.example');
    await goWithin(page, 'connect');
    await call('DELETE', `/changelog/${tenant}/subscriptions/${alert?.id}`);
  });

  test('one sees how far a subscription is and what failed, tests it, sends the last changes again, and pauses it', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const call = await caller(the());
    const receiver = await startReceiver();
    const { id }: { id: string } = JSON.parse(
      await call('POST', `/changelog/${tenant}/subscriptions`, {
        name: 'Letters',
        q: 'entity:letter',
        target: { type: 'webhook', url: receiver.url },
      }),
    );
    await recordLife(server, tenant, { entity: 'letter' }, ['{"n":1}']);
    await expect.poll(() => receiver.received.length).toBe(1);
    const page = await open('subscriptions', { width: 380, height: 760 });
    await page.getByText('active', { exact: true }).waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    await page.getByRole('link', { name: 'Letters' }).click();
    await page.getByRole('heading', { name: 'Letters' }).waitFor();
    await page.locator('tbody').getByText('delivered', { exact: true }).waitFor();
    // What was sent is rebuilt, and why the answer is not kept is said.
    await page.getByRole('button', { name: 'Details of attempt 1' }).click();
    const sent = page.getByRole('region', { name: 'The request' });
    await expect.poll(() => sent.textContent()).toMatch(/POST http.*webhook-signature: \*+.*"entity":"letter"/s);
    await page.getByRole('dialog').getByText('Not kept: the target is in a private network').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page, 'dialog');
    await page.keyboard.press('Escape');
    receiver.answer = (_received, response) => void response.writeHead(500).end('out of paper');
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await page.getByRole('dialog').getByText('failed', { exact: true }).waitFor();
    await page.getByRole('dialog').getByText('The target answered 500.').waitFor();
    await page.getByRole('dialog').getByText('The target failed. Look into its log.').waitFor();
    await expect.poll(() => sent.textContent()).toContain('"test":true');
    await checkAccessibility(page, 'dialog');
    await page.keyboard.press('Escape');
    const row = page.locator('tbody tr').filter({ hasText: 'failed' });
    await row.getByText('The target answered 500.').waitFor();
    await row.getByText('test', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Show what matched' }).click();
    await page.getByText('1 change of the last 24 hours').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);

    await page.getByRole('button', { name: 'Rotate the key' }).click();
    await page.getByRole('button', { name: 'Make a new key' }).click();
    await expect.poll(() => page.getByRole('dialog').locator('code').textContent()).toMatch(/^whsec_/);
    await page.getByRole('button', { name: 'Done' }).click();
    receiver.answer = (_received, response) => void response.writeHead(204).end();
    const before = receiver.received.length;
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
    await page.getByText('The replay has started.').waitFor();
    await expect.poll(() => receiver.received.length).toBeGreaterThan(before);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('It was paused by a client.').waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await expect.poll(() => page.getByText('It was paused by a client.').count()).toBe(0);

    // Who only reads changes nothing, and who may not read the history sees none of it.
    const reader = await open(`subscriptions/one?id=${id}`, { scope: 'changelog.subscription_read' });
    await reader.getByRole('heading', { name: 'Letters' }).waitFor();
    await reader.getByRole('button', { name: 'Details of attempt 1' }).click();
    await reader.getByRole('dialog').getByText('delivered', { exact: true }).waitFor();
    expect(await reader.getByRole('heading', { name: 'What was sent' }).count()).toBe(0);
    await reader.keyboard.press('Escape');
    for (const name of ['Test', 'Edit', 'Pause', 'Replay…', 'Delete the subscription', 'Show what matched']) {
      expect(await reader.getByRole('button', { name, exact: true }).count(), name).toBe(0);
    }
    // An alert cannot be sent once more.
    await call('POST', `/changelog/${tenant}/subscriptions`, {
      ...{ id: 'alert', name: 'Post alert', target: { type: 'email', to: 'operations@example.com' } },
    });
    await goWithin(page, 'subscriptions/one?id=alert');
    await page.getByRole('heading', { name: 'Post alert' }).waitFor();
    await page.getByRole('button', { name: 'Edit' }).waitFor();
    expect(await page.getByRole('button', { name: 'Replay…' }).count()).toBe(0);
    // No page shows what is deleted.
    for (const one of [page, reader]) await goWithin(one, 'connect');
    await call('DELETE', `/changelog/${tenant}/subscriptions/alert`);
    await call('DELETE', `/changelog/${tenant}/subscriptions/${id}`);
    await receiver.close();
  });
}
