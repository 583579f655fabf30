import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { TestServer } from '../../../test/support/server/server.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { goWithin } from '../support/windows.ts';

const scope =
  'access.credential_view access.credential_manage changelog.changelog_read changelog.viewer_issue ai.completion_manage';

/** Clients and keys, administered in the page. */
export function credentialTests(the: () => ConsoleUnderTest): void {
  test('a client is made with its secret shown once, narrowed, rotated and revoked, by the keyboard too', async () => {
    const { server, open, checkAccessibility } = the();
    const tenant = 'makers';
    await server.createTenant(tenant);
    const page = await open('security/clients', { tenant, scope, width: 390 });
    await page.getByRole('heading', { name: 'Clients' }).waitFor();
    await expect.poll(() => page.title()).toBe('Clients · Security · Annals');
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);

    await page.getByRole('button', { name: 'New client' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    // Without a scope there is nothing to make.
    expect(await dialog.getByRole('button', { name: 'Make' }).isDisabled()).toBe(true);
    await dialog.getByLabel('Name').fill('Billing');
    await dialog.getByLabel('changelog.viewer_issue').check();
    await dialog.getByLabel('changelog.changelog_read').focus();
    await page.keyboard.press('Space');
    await dialog.getByLabel('Query').fill('entity:invoice');
    await checkAccessibility(page, 'dialog');
    expect(await sidewaysRoom(page)).toBe(0);
    await page.keyboard.press('Enter');
    await dialog.getByText('is shown only once').waitFor();
    const first = await secretOf(page);
    await checkAccessibility(page, 'dialog');
    expect(await sidewaysRoom(page)).toBe(0);
    await dialog.getByRole('button', { name: 'Done' }).click();
    // After two dialogs the focus is where it was before the first.
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('New client');
    await page.getByRole('row', { name: /Billing/ }).waitFor();
    expect(await page.content()).not.toContain(first);
    await page.setViewportSize({ width: 1280, height: 860 });
    const row = page.getByRole('row', { name: /Billing/ });
    const id = (await row.locator('.mono').first().textContent()) ?? '';
    expect(await statusOf(server, id, first)).toBe(200);

    await row.getByRole('button', { name: 'Narrow Billing' }).click();
    const narrow = dialog.getByRole('button', { name: 'Narrow' });
    expect(await narrow.isDisabled()).toBe(true);
    await dialog.getByLabel('changelog.viewer_issue').uncheck();
    await dialog.getByLabel('Further hidden paths').fill('iban');
    await checkAccessibility(page, 'dialog');
    await narrow.click();
    await row.getByText('without iban').waitFor();
    expect(await row.getByText('changelog.viewer_issue').count()).toBe(0);
    await row.getByText('entity:invoice').waitFor();

    await row.getByRole('button', { name: 'Rotate Billing' }).click();
    await dialog.getByRole('button', { name: 'Replace' }).click();
    await dialog.getByText('is shown only once').waitFor();
    const second = await secretOf(page);
    await page.keyboard.press('Escape');
    expect([await statusOf(server, id, first), await statusOf(server, id, second)]).toEqual([401, 200]);

    await row.getByRole('button', { name: 'Revoke Billing' }).click();
    await dialog.getByText('all that it has made').waitFor();
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await row.getByText('revoked').waitFor();
    expect(await row.getByRole('button').count()).toBe(0);
    expect(await statusOf(server, id, second)).toBe(401);
    await page.getByRole('button', { name: 'Active' }).click();
    await expect.poll(() => page.getByRole('row', { name: /Billing/ }).count()).toBe(0);
    await checkAccessibility(page);
  });

  test('a key has actors, models and a rate, and a mistake stays in the form with what is wrong', async () => {
    const { server, open, checkAccessibility } = the();
    const tenant = 'keymakers';
    await server.createTenant(tenant);
    const page = await open('security/clients', { tenant, scope, statuses: [400, 409] });
    await page.getByRole('link', { name: 'keys', exact: true }).click();
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    await page.getByRole('button', { name: 'New key' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('ai.completion_manage').check();
    await dialog.getByLabel('Actor details').selectOption('all');
    await dialog.getByRole('button', { name: 'Make' }).click();
    await dialog
      .getByRole('alert')
      .getByText(/cannot have ai.completion_manage/)
      .first()
      .waitFor();
    await dialog.getByLabel('Actor details').selectOption('');
    await dialog.getByLabel('User', { exact: true }).fill('jane');
    await dialog.getByRole('button', { name: 'Make' }).click();
    await dialog.getByText('is shown only once').waitFor();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('row', { name: /for the user jane/ }).waitFor();
    await page.getByRole('button', { name: 'New key' }).first().click();
    await dialog.getByLabel('Actor details').selectOption('all');
    await dialog.getByLabel('changelog.changelog_read').check();
    await dialog.getByLabel('Requests a second').fill('5');
    await checkAccessibility(page, 'dialog');
    await dialog.getByRole('button', { name: 'Make' }).click();
    await dialog.getByText('is shown only once').waitFor();
    expect(await secretOf(page)).toMatch(/^annals_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}$/);
    await dialog.getByRole('button', { name: 'Done' }).click();
    const row = page.getByRole('row', { name: /annals_.*with the ids of actors/ });
    await row.getByText('with the ids of actors').waitFor();
    await row.getByText('never').waitFor();
    await row.getByRole('button', { name: /^Narrow/ }).click();
    await dialog.getByLabel('Requests a second').fill('6');
    await dialog.getByRole('button', { name: 'Narrow' }).click();
    await dialog
      .getByRole('alert')
      .getByText(/can only be lowered/)
      .first()
      .waitFor();
    await page.keyboard.press('Escape');
    // On a wide screen the actions are in sight, however much the others need.
    await page.setViewportSize({ width: 1_280, height: 800 });
    const { x = 0, width = 0 } = (await row.getByRole('button', { name: /^Revoke/ }).boundingBox()) ?? {};
    expect(width > 0 && x + width <= 1_280).toBe(true);
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    await goWithin(page, 'connect');
    await page.getByText('You make one under').waitFor();
    await checkAccessibility(page);
  });

  test('who may only view them sees no way to change them, and who may not, no page', async () => {
    const { server, open } = the();
    const tenant = 'viewers';
    await server.createClient(tenant, { name: 'Reports' });
    const page = await open('security/clients', { tenant, scope: 'access.credential_view' });
    await page.getByText('Reports').waitFor();
    expect(await page.getByRole('button', { name: /New client|Narrow|Rotate|Revoke/ }).count()).toBe(0);
    const other = await open('security/clients', { tenant, scope: 'changelog.access_read' });
    await other.getByRole('heading', { name: 'There is no such page' }).waitFor();
  });
}

async function secretOf(page: Page): Promise<string> {
  return (await page.getByRole('dialog').locator('pre').last().textContent()) ?? '';
}

async function statusOf(server: TestServer, clientId: string, clientSecret: string): Promise<number> {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
  });
  return (await server.call('/oauth/token', { method: 'POST', body })).status;
}
