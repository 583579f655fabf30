import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { NewClient } from '../../../src/access/oauth/clients.ts';
import type { TestServer } from '../../../test/support/server/server.ts';
import { type CertifiedProvider, startCertifiedProvider } from '../../../test/support/vendor/certified-provider.ts';
import { startBehindProxy } from '../support/behind-proxy.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';

/** A service behind a proxy with a path, where a company's account signs in too. */
interface ServiceBelowPath {
  readonly server: TestServer;
  readonly provider: CertifiedProvider;
  readonly url: string;
  close(): Promise<void>;
}

/** Signing in with a company's account, at a certified provider, by the pages of both, and with a client; all below a path. */
export function companyAccountTests(the: () => ConsoleUnderTest): void {
  let started: ServiceBelowPath | undefined;
  afterAll(() => started?.close());

  /** To start it takes as long as a test. A test that is repeated has another server. */
  async function belowPath(): Promise<ServiceBelowPath> {
    const { server, tenant } = the();
    if (started?.server === server) return started;
    await started?.close();
    started = await startBelowPath(server, ['acme', tenant]);
    return started;
  }

  test('one signs in at the provider, comes back to the requested view, changes the tenant, and signs out there too', async () => {
    const { tenant, open, checkAccessibility } = the();
    const { provider, url } = await belowPath();
    const page = await open('history?q=type%3Adelete', {
      signedOut: true,
      statuses: [401, 503],
      baseUrl: url,
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
      await page.waitForURL(`${url}/console/`);
      await expect.poll(() => tenants.inputValue()).toBe(tenant);

      await page.getByRole('link', { name: 'Connect' }).click();
      await page.getByText('You have no key.').waitFor();
      await page.getByRole('button', { name: 'Make a key' }).click();
      await page.getByRole('heading', { name: 'Your new key' }).waitFor();
      await checkAccessibility(page);
      await page.setViewportSize({ width: 320, height: 900 });
      expect(await sidewaysRoom(page)).toBe(0);
      await page.setViewportSize({ width: 1280, height: 860 });
      const lines = await page.locator('.copied-lines pre').allTextContents();
      const [, key = ''] = /^export ANNALS_KEY=(annals_\w{66})$/.exec(lines[0] ?? '') ?? [];
      expect(lines).toHaveLength(5);
      for (const line of lines.slice(1)) expect(line).toContain(`${url}/mcp/${tenant}`);
      const answer = await fetch(`${url}/mcp/${tenant}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      });
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('search_changes')]);
      await page.reload();
      await page.getByRole('button', { name: `Revoke ${key.slice(0, 23)}` }).click();
      expect(await page.content()).not.toContain(key);
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
      await page.getByText('You have no key.').waitFor();

      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('button', { name: 'Yes, sign me out' }).click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await expect.poll(() => page.url()).toBe(`${url}/console/`);
      // The provider asks again who it is.
      await page.getByRole('link', { name: "Sign in with your company's account" }).click();
      await page.getByPlaceholder('Enter any login').waitFor();
    } finally {
      await page.close();
    }
  });

  test('who may sees who is signed in, ends sessions, and tests the sign-in', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const { provider, url } = await belowPath();
    const batch = await server.createClient(tenant, { name: `Batch ${Date.now()}` });
    const ofBatch = await signedInAs(url, batch);
    const page = await open(`security/sessions?tenant=${tenant}`, {
      signedOut: true,
      statuses: [401],
      baseUrl: url,
      others: [provider.issuer, 'https://fonts.googleapis.com'],
    });
    try {
      await page.route(/^https:/, (route) => route.fulfill({ body: '' }));
      await page.getByRole('link', { name: "Sign in with your company's account" }).click();
      await page.getByPlaceholder('Enter any login').fill('Keeper');
      await page.getByPlaceholder('and password').fill('any');
      await page.getByRole('button', { name: 'Sign-in' }).click();
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('heading', { name: 'Sessions and people' }).waitFor();
      const own = page.getByRole('row').filter({ hasText: 'Keeper' });
      await expect.poll(() => own.textContent()).toMatch(/Keeper \(this session\)Chrome \d+, Linux/);
      await checkAccessibility(page);
      await page.setViewportSize({ width: 390, height: 800 });
      expect(await sidewaysRoom(page)).toBe(0);

      // By the keyboard alone.
      await page.getByRole('button', { name: `End the session of ${batch.name}` }).focus();
      await page.keyboard.press('Enter');
      await page.getByRole('dialog', { name: 'End this session?' }).waitFor();
      await checkAccessibility(page);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      expect(await ofBatch()).toBe(200);
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').getByRole('button', { name: 'End it' }).press('Enter');
      await expect.poll(() => page.getByText(batch.name).count()).toBe(0);
      expect(await ofBatch()).toBe(401);

      await page.getByRole('link', { name: 'Sign-in', exact: true }).click();
      await page.getByRole('heading', { name: 'Rules of this tenant' }).waitFor();
      await page.getByText('Accounts whose sub is or contains Keeper get access.credential_manage').waitFor();
      await page.getByText(`${url}/console/oidc/backchannel-logout`).waitFor();
      await page.getByRole('button', { name: 'Test the sign-in' }).click();
      await page.getByText('This account may sign in.').waitFor();
      await expect.poll(() => page.url()).toBe(`${url}/console/security/sign-in`);
      await page.getByText('Applies.').waitFor();
      await page.getByRole('row').filter({ hasText: 'groups' }).getByText('["auditors"]').waitFor();
      await checkAccessibility(page);
      expect(await sidewaysRoom(page)).toBe(0);

      await page.setViewportSize({ width: 1280, height: 860 });
      await page.getByRole('link', { name: 'Sessions', exact: true }).click();
      await page.getByRole('button', { name: 'End all sessions of Keeper' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'End all' }).click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    } finally {
      await page.close();
    }
  });

  test('sessions and the sign-in are shown to who has a scope for them, and no button to who may only look', async () => {
    const { open } = the();
    const without = await open('security/sessions', { scope: 'changelog.access_read changelog.proof_read' });
    await without.getByText('There is no such page').waitFor();
    expect(await without.getByRole('link', { name: 'Sessions' }).count()).toBe(0);
    const viewer = await open('security/sessions', { scope: 'access.credential_view' });
    await viewer.getByText('(this session)').waitFor();
    expect(await viewer.getByRole('button', { name: /^End/ }).count()).toBe(0);
    // No one signs in with an account here.
    expect(await viewer.getByRole('link', { name: 'Sign-in' }).count()).toBe(0);
  });

  test('with a client one signs in as well, and the links of the views lead to others below the path', async () => {
    const { server, tenant, open } = the();
    const { clientId, clientSecret } = await server.createClient(tenant);
    const { url } = await belowPath();
    const page = await open('history?q=type%3Adelete', { signedOut: true, statuses: [401], baseUrl: url });
    try {
      await page.getByLabel('Client id').fill(clientId);
      await page.getByLabel('Client secret').fill(clientSecret);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.locator('.entry-link').first().click();
      await page.getByRole('complementary').getByRole('link').first().click();
      await page.locator('.history-total').waitFor();
      await expect.poll(() => page.url()).toContain(`${url}/console/actor?name=`);
    } finally {
      await page.close();
    }
  });
}

/** Signs in with the client's secret. Returns the status of a request by that session. */
async function signedInAs(
  url: string,
  { clientId, clientSecret }: Pick<NewClient, 'clientId' | 'clientSecret'>,
): Promise<() => Promise<number>> {
  const headers = { origin: new URL(url).origin, 'content-type': 'application/json' };
  const body = JSON.stringify({ clientId, clientSecret });
  const begun = await fetch(`${url}/console/api/session`, { method: 'POST', headers, body });
  const [cookie = ''] = (begun.headers.getSetCookie()[0] ?? '').split(';');
  return async () => {
    const answer = await fetch(`${url}/console/api/session`, { headers: { cookie } });
    await answer.body?.cancel();
    return answer.status;
  };
}

async function startBelowPath(server: TestServer, tenants: readonly string[]): Promise<ServiceBelowPath> {
  for (const tenant of tenants) await server.createTenant(tenant);
  const provider = await startCertifiedProvider(['auditors']);
  const rulesFile = join(tmpdir(), `annals-rules-${process.pid}.json`);
  const rule = { claims: { groups: 'auditors' }, tenants, scopes: ['changelog.changelog_read'] };
  const ofKeeper = {
    claims: { sub: 'Keeper' },
    tenants,
    scopes: ['access.credential_manage', 'changelog.changelog_read'],
  };
  await writeFile(rulesFile, JSON.stringify({ rules: [ofKeeper, rule] }));
  const annals = await startBehindProxy(server, '/tools/annals', {
    ANNALS_OIDC_ISSUER: provider.issuer,
    ANNALS_OIDC_CLIENT_ID: provider.clientId,
    ANNALS_OIDC_CLIENT_SECRET: provider.clientSecret,
    ANNALS_OIDC_RULES: rulesFile,
  });
  await provider.serve(annals.url);
  return {
    server,
    provider,
    url: annals.url,
    async close() {
      await annals.close();
      await provider.stop();
      await rm(rulesFile);
    },
  };
}
