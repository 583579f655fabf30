import { expect, test } from 'vitest';
import { createLink } from '../../../src/access/sessions/links.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';

/** What a person does to get in and out. */
export function sessionTests(the: () => ConsoleUnderTest): void {
  test('one signs in with a client, after a wrong secret too, and comes to the view that the address names', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    const { clientId, clientSecret } = await server.createClient(tenant, { name: 'Ada' });
    const page = await open('history?q=type%3Adelete', { signedOut: true, statuses: [401] });
    await page.getByLabel('Client id').fill(clientId);
    await page.getByLabel('Client secret').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('The client id or the secret is wrong').waitFor();
    await checkAccessibility(page);
    await page.getByLabel('Client secret').fill(clientSecret);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'History' }).waitFor();
    await expect.poll(() => page.getByRole('combobox', { name: 'Query' }).inputValue()).toBe('type:delete');
    // The secret is nowhere in the page.
    expect(await page.content()).not.toContain(clientSecret);

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  test('a link signs in once and is gone from the address at once', async () => {
    const { server, tenant, open } = the();
    const { clientId } = await server.createClient(tenant);
    const fragment = await inTransaction(server.context.db, (transaction) =>
      createLink(transaction, { tenant, clientId, lifetime: 60_000 }),
    );
    const page = await open(`history#${fragment}`, { signedOut: true });
    await page.getByRole('heading', { name: 'History' }).waitFor();
    await expect.poll(() => page.url()).toBe(`${server.baseUrl}/console/history`);

    const again = await open(`history#${fragment}`, { signedOut: true, statuses: [401] });
    await again.getByText('This link no longer works').waitFor();
    await expect.poll(() => again.url()).not.toContain('#');
  });

  test('after the session has ended, a sign-in returns to the same view', async () => {
    const { server, tenant, open } = the();
    const { clientId, clientSecret } = await server.createClient(tenant);
    const page = await open('history?q=entity%3Acoupon+type%3Acreate', { signedOut: true, statuses: [401] });
    const signIn = async () => {
      await page.getByLabel('Client id').fill(clientId);
      await page.getByLabel('Client secret').fill(clientSecret);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('list', { name: 'Terms of the query' }).getByText('create').waitFor();
    };
    const ended = page.getByText('Your session has ended');
    await signIn();
    await page.getByRole('button', { name: 'Live' }).click();
    await page.context().clearCookies();
    // Chart and facets are requested after the list. On a slow machine they may be refused before the click.
    await page.getByRole('button', { name: 'Refresh' }).or(ended).click();
    await ended.waitFor();
    await signIn();
    await expect.poll(() => page.url()).toContain('history?q=entity%3Acoupon+type%3Acreate');
  });

  test('a request that the page makes by itself says that the session has ended', async () => {
    const { server, tenant, open } = the();
    const { clientId, clientSecret } = await server.createClient(tenant);
    const page = await open('history?q=type%3Acreate', { signedOut: true, statuses: [401] });
    const list = Promise.withResolvers<void>();
    const isEnded = Promise.withResolvers<void>();
    await page.route(/\/changelogs\?/, async (route) => {
      const response = await route.fetch();
      list.resolve();
      await isEnded.promise;
      await route.fulfill({ response });
    });
    await page.getByLabel('Client id').fill(clientId);
    await page.getByLabel('Client secret').fill(clientSecret);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await list.promise;
    await page.context().clearCookies();
    isEnded.resolve();
    await page.getByText('Your session has ended').waitFor();
    await page.unroute(/\/changelogs\?/);
  });

  test('what the scopes do not allow is not there', async () => {
    const { open } = the();
    const reader = await open('data', { scope: 'changelog.changelog_read' });
    await reader.getByRole('heading', { name: 'Jobs' }).waitFor();
    expect(await reader.getByRole('main').getByText('Configuration').count()).toBe(0);

    const other = await open('history', { scope: 'ai.completion_manage' });
    await other.getByRole('heading', { name: 'There is no such page' }).waitFor();
    expect(await other.getByRole('navigation').getByText('History').count()).toBe(0);
  });
}
