import { expect, test } from 'vitest';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';

const agents = '/ai-service/demo/agentic/agents';

/** What a person does with agents. */
export function agentTests(the: () => ConsoleUnderTest): void {
  test('an agent is made in a form that tells faults while one types, and its key is never shown', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('desk/agent/new');
    await page.getByLabel('Id', { exact: true }).fill('form');
    await page.getByLabel('Name in en', { exact: true }).fill('Form <b>desk</b>');
    await page.getByLabel('Provider').selectOption('openai');
    await page.getByLabel('Temperature').fill('7');
    await page.getByText('A number from 0 to 2.').waitFor();
    await page.getByLabel('Key').fill('two words');
    await page.getByText('A key consists of visible ASCII characters').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Name the model as its provider calls it.').waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('aria-invalid'))).toBe('true');
    await checkAccessibility(page);
    await page.getByLabel('Model').fill('gpt-5.4-mini');
    await page.getByLabel('Temperature').fill('0.5');
    await page.getByLabel('Key').fill('sk-never-shown');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'Form <b>desk</b> enabled' }).waitFor();
    await page.getByText('set; it is never shown').waitFor();
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await page.getByText('leave this empty to keep it').waitFor();
    expect(await page.getByLabel('Key').inputValue()).toBe('');
    expect(await page.content()).not.toContain('sk-never-shown');
    await page.getByLabel('Temperature').fill('1');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('version 2').waitFor();
  });

  test('an agent says why the service has disabled it, what failed, and is brought back', async () => {
    const { vendor, open, checkAccessibility } = the();
    const call = await caller(the());
    const llmConfig = { provider: 'anthropic', model: 'm', apiKey: 'sk-old' };
    await call('PUT', `${agents}/refused`, { name: { en: 'Refused' }, llmConfig });
    vendor.behave({ kind: 'status', status: 401 });
    for (let failure = 0; failure < 10; failure += 1) {
      await call('POST', '/ai-service/demo/agentic/chat', { agentId: 'refused', message: 'Hello' }, 400);
    }
    vendor.behave({ kind: 'answer' });
    const page = await open('desk/agents');
    await page.getByRole('button', { name: 'Disabled' }).click();
    await page.getByRole('link', { name: 'Refused' }).click();
    await page.getByText('10 configuration failures in a row').waitFor();
    await checkAccessibility(page);
    await page.getByRole('link', { name: 'See what failed' }).click();
    await page.getByText('10 requests').waitFor();
    await page
      .getByRole('row', { name: /Refused failed/ })
      .first()
      .locator('.row-link')
      .click();
    await page.getByRole('complementary').getByRole('link', { name: 'Refused refused' }).waitFor();
    await page.getByRole('complementary').getByText('the provider refuses the key', { exact: false }).first().waitFor();
    await checkAccessibility(page);
    await page.goBack();
    await page.goBack();
    await page.getByRole('button', { name: 'Enable again' }).click();
    await page.getByRole('heading', { name: 'Refused enabled' }).waitFor();
  });

  test('tools of a server are read and ticked, and one that has changed is shown beside what was approved', async () => {
    const { tools, open, checkAccessibility } = the();
    const call = await caller(the());
    const nativeTools = ['change-history'];
    await call('PUT', `${agents}/librarian`, {
      name: { en: 'Librarian' },
      llmConfig: { provider: 'shared' },
      nativeTools,
    });
    const inputSchema = { type: 'object', properties: { words: { type: 'string' } } };
    const search = { name: 'search', description: 'Searches <b>books</b>.', inputSchema };
    tools.tools = [search, { ...search, name: 'to.order' }];
    const page = await open('desk/agent?id=librarian');
    await page.getByRole('button', { name: 'Add a server' }).click();
    await page.getByLabel('Name', { exact: true }).fill('a b');
    await page.getByLabel('Address').fill(tools.url);
    await page.getByRole('button', { name: 'Add a header' }).click();
    await page.getByLabel('Name of header 1').fill('Authorization');
    await page.getByLabel('Value of header 1').fill('Bearer never-shown');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Letters, digits and hyphens, such as docs.').waitFor();
    await checkAccessibility(page);
    await page.getByLabel('Name', { exact: true }).fill('books');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('No tool is approved.').waitFor();
    await page.getByRole('button', { name: 'Choose tools' }).click();
    await page.getByText('No agent can have it: it has a name with other characters').waitFor();
    expect(await page.getByRole('checkbox', { name: /^to\.order/ }).isDisabled()).toBe(true);
    await page.getByRole('checkbox', { name: 'search not approved' }).check();
    expect(await page.getByRole('button', { name: 'Approve' }).isDisabled()).toBe(true);
    await page.getByText('What it finds there may go to this server.').click();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('books__search').waitFor();
    expect(await page.content()).not.toContain('never-shown');

    tools.tools = [{ ...search, description: 'Searches and orders books.' }];
    await page.getByRole('button', { name: 'Choose tools' }).click();
    const changed = page.getByRole('checkbox', { name: 'search has changed' });
    expect(await changed.isChecked()).toBe(false);
    await page.getByText('Searches <b>books</b>.').waitFor();
    await checkAccessibility(page);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('has changed, not offered').waitFor();
    await page.getByRole('button', { name: 'Choose tools' }).click();
    await changed.check();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('approved', { exact: true }).waitFor();
    // The form leaves them as they are.
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await page.getByLabel('Temperature').fill('1');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('books__search').waitFor();
    await page.getByRole('button', { name: 'Remove books' }).click();
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByText('None. A server that speaks').waitFor();
  });

  test('a session sees the parts that its scopes allow, and no others', async () => {
    const { open } = the();
    const call = await caller(the());
    await call('PUT', `${agents}/prices`, { name: { en: 'Prices' }, llmConfig: { provider: 'shared' } });
    const page = await open('', { scope: 'ai.agentexecution_manage' });
    await page.getByText('Your client may chat, but has no scope to list agents.').waitFor();
    const links = page.getByRole('navigation').getByRole('link');
    await expect.poll(() => links.allInnerTexts()).toEqual(['AI desk']);
    const reader = await open('desk/agent?id=prices', { scope: 'ai.agent_read' });
    await reader.getByRole('heading', { name: 'Prices enabled' }).waitFor();
    expect(await reader.getByRole('main').getByRole('button').allInnerTexts()).toEqual([]);
    await reader.getByRole('link', { name: 'Models' }).click();
    await reader.getByRole('heading', { name: 'OpenAI' }).waitFor();
    await reader.setViewportSize({ width: 380, height: 800 });
    expect(await sidewaysRoom(reader)).toBe(0);
  });
}
