import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCertifiedProvider } from '../../../test/support/vendor/certified-provider.ts';
import { startBehindProxy } from '../support/behind-proxy.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/sideways-room.ts';

/** Signing in with a company's account, at a certified provider, by the pages of both. */
export function companyAccountTests(the: () => ConsoleUnderTest): void {
  test('one signs in at the provider, comes back to the view that was wanted, changes the tenant, and signs out there too', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    await server.createTenant('acme');
    const provider = await startCertifiedProvider(['auditors']);
    const rulesFile = join(tmpdir(), `annals-rules-${process.pid}.json`);
    const rule = { claims: { groups: 'auditors' }, tenants: ['acme', tenant], scopes: ['changelog.changelog_read'] };
    await writeFile(rulesFile, JSON.stringify({ rules: [rule] }));
    const annals = await startBehindProxy(server, '', {
      ANNALS_OIDC_ISSUER: provider.issuer,
      ANNALS_OIDC_CLIENT_ID: provider.clientId,
      ANNALS_OIDC_CLIENT_SECRET: provider.clientSecret,
      ANNALS_OIDC_RULES: rulesFile,
    });
    await provider.serve(annals.url);
    const page = await open('history?q=type%3Adelete', {
      signedOut: true,
      statuses: [401, 503],
      baseUrl: annals.url,
      // Its page asks for a font, which it does not get.
      others: [provider.issuer, 'https://fonts.googleapis.com'],
    });
    try {
      await page.route(/^https:/, (route) => route.fulfill({ body: '' }));
      await page.getByRole('link', { name: "Sign in with your company's account" }).waitFor();
      await checkAccessibility(page);
      // It is what the keyboard reaches first.
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByRole('link', { name: /Cancel/ }).click();
      await page.getByRole('alert').getByText('You did not sign in').waitFor();

      await page.getByRole('link', { name: "Sign in with your company's account" }).click();
      await page.getByPlaceholder('Enter any login').fill('Jane Doe');
      await page.getByPlaceholder('and password').fill('any');
      await page.getByRole('button', { name: 'Sign-in' }).click();
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('heading', { name: 'History' }).waitFor();
      await expect.poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue()).toBe('type:delete');
      await expect.poll(() => page.locator('.account-names').textContent()).toContain('Jane Doe');

      const tenants = page.getByRole('combobox', { name: 'Tenant' });
      await expect.poll(() => tenants.inputValue()).toBe('acme');
      await checkAccessibility(page, '.account');
      provider.isAway = true;
      await tenants.selectOption(tenant);
      await page.getByText('You stay in this tenant').waitFor();
      await expect.poll(() => tenants.inputValue()).toBe('acme');
      provider.isAway = false;
      await tenants.selectOption(tenant);
      await page.waitForURL(`${annals.url}/console/`);
      await expect.poll(() => tenants.inputValue()).toBe(tenant);

      await page.getByRole('link', { name: 'Connect' }).click();
      await page.getByText('You have no key.').waitFor();
      await page.getByRole('button', { name: 'Make a key' }).click();
      await page.getByRole('heading', { name: 'Your new key' }).waitFor();
      await checkAccessibility(page);
      await page.setViewportSize({ width: 320, height: 900 });
      expect(await sidewaysRoom(page)).toBe(0);
      await page.setViewportSize({ width: 1280, height: 860 });
      const lines = await page.locator('.connect-lines pre').allTextContents();
      const [, key = ''] = /^export ANNALS_KEY=(annals_\w{66})$/.exec(lines[0] ?? '') ?? [];
      expect(lines).toHaveLength(5);
      for (const line of lines.slice(1)) expect(line).toContain(`${annals.url}/mcp/${tenant}`);
      const asked = await fetch(`${annals.url}/mcp/${tenant}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      });
      expect([asked.status, await asked.text()]).toEqual([200, expect.stringContaining('search_changes')]);
      await page.reload();
      await page.getByRole('button', { name: `Revoke ${key.slice(0, 23)}` }).click();
      expect(await page.content()).not.toContain(key);
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
      await page.getByText('You have no key.').waitFor();

      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('button', { name: 'Yes, sign me out' }).click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await expect.poll(() => page.url()).toBe(`${annals.url}/console/`);
      // The provider asks again who it is.
      await page.getByRole('link', { name: "Sign in with your company's account" }).click();
      await page.getByPlaceholder('Enter any login').waitFor();
    } finally {
      await page.close();
      await annals.close();
      await provider.stop();
      await rm(rulesFile);
    }
  });
}
