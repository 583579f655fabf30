import { expect, test } from 'vitest';
import { vendorFormats } from '../../../test/support/vendor/vendor-formats.ts';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { findMotion, findUnaskedAnimations } from '../support/find-motion.ts';
import { waitForQuiet } from '../support/quiet.ts';
import { sidewaysRoom } from '../support/sideways-room.ts';

const agents = '/ai-service/demo/agentic/agents';
const usage = { input: 412, output: 96 };

/** What a person does at the AI desk. */
export function deskTests(the: () => ConsoleUnderTest): void {
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
    await page.getByLabel('Name of the header').fill('Authorization');
    await page.getByLabel('Value of Authorization').fill('Bearer never-shown');
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

  test('a chat streams, is stopped, and its session reads as a conversation with its tokens', async () => {
    const { vendor, open, checkAccessibility } = the();
    const call = await caller(the());
    await call('PUT', `${agents}/prices`, { name: { en: 'Prices' }, llmConfig: { provider: 'shared' } });
    const [format] = vendorFormats;
    let finish: (() => void) | undefined;
    const rest = new Promise<void>((resolve) => {
      finish = resolve;
    });
    vendor.behave({ kind: 'answer', text: 'Jane did,\n<i>on Monday</i>.', usage });
    const page = await open('desk/chat?agent=prices', { height: 420 });
    await page.getByLabel('Message').fill('Who changed it?');
    await page.keyboard.press('Enter');
    await page.getByText('<i>on Monday</i>.').waitFor();
    await page.getByRole('link', { name: 'Tokens and log' }).waitFor();
    await expect.poll(() => page.locator('.turn-agent').textContent()).toBe('Prices');
    await expect.poll(() => page.locator('.turn-agent [title]').getAttribute('title')).toBe('prices');

    const events = format?.events({ text: 'Because of the summer sale', usage }).slice(0, 2) ?? [];
    vendor.behave({ kind: 'events', events, last: 'stall', after: rest });
    await page.getByLabel('Message').fill('And why?');
    await page.keyboard.press('Enter');
    await page.getByText('The agent is writing').waitFor({ state: 'attached' });
    // What is being written blinks, but not for a reader who wants no motion.
    expect(await findMotion(page)).toEqual([]);
    expect(await findUnaskedAnimations(page)).toEqual([]);
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    await expect.poll(() => findMotion(page)).toContainEqual(expect.stringContaining('turn-writing'));
    await expect.poll(() => findUnaskedAnimations(page)).toContainEqual(expect.stringContaining('.turn-writing'));
    await page.emulateMedia({ reducedMotion: 'reduce' });
    finish?.();
    await page.getByText('Because').waitFor();
    // The page follows what is written.
    const belowView = () => page.evaluate(() => document.documentElement.scrollHeight - scrollY - innerHeight);
    await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(0);
    await expect.poll(belowView).toBeLessThan(2);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Stopped. The agent does not remember this answer').waitFor();
    vendor.behave({ kind: 'answer' });
    await checkAccessibility(page);

    await page.getByRole('link', { name: 'Session’s log' }).click();
    const panel = page.getByRole('complementary');
    await panel.getByText('Who changed it?').waitFor();
    await panel.getByText('412 tokens in, 96 tokens out').first().waitFor();
    await expect.poll(() => panel.locator('.turn').count()).toBe(2);
    await expect.poll(() => panel.locator('.turn-agent').allInnerTexts()).toEqual(['Prices', 'Prices']);
    await page.locator('tbody').getByText('Prices').first().waitFor();
    await panel.getByText('the chat was stopped', { exact: false }).waitFor();
    await checkAccessibility(page, '.side-panel');
  });

  test('an answer in Markdown is laid out, nothing of it becomes markup, and what the agent asked stands beside it', async () => {
    const { vendor, open, checkAccessibility } = the();
    const call = await caller(the());
    const agent = { name: { en: 'Writer' }, llmConfig: { provider: 'shared' }, nativeTools: ['change-history'] };
    await call('PUT', `${agents}/writer`, agent);
    const text = [
      '## What changed',
      '- the **price**, by `Jane`',
      '- the <img src=x onerror=alert(1)> stock',
      '',
      '| Who | How often |',
      '|---|---|',
      '| Jane | 3 |',
      '',
      '[web](https://example.com/a) [script](javascript:alert(1)) ![picture](https://example.com/p.png)',
      '```',
      'q=\u202eentity:order',
      '```',
    ].join('\n');
    const q = 'entity:product type:delete';
    let rounds = 0;
    vendor.behave(() => {
      rounds += 1;
      if (rounds > 1) return { kind: 'answer', text, usage };
      return { kind: 'answer', toolCall: { id: 'call-1', name: 'change-history', input: { q } }, usage };
    });
    const page = await open('desk/chat?agent=writer');
    await page.getByLabel('Message').fill('What changed?');
    await page.keyboard.press('Enter');
    const answer = page.locator('.markdown');
    await answer.getByText('What changed', { exact: true }).waitFor();
    await page.locator('.turn-notes').getByText(q).waitFor();
    await expect.poll(() => answer.locator('strong').allInnerTexts()).toEqual(['price']);
    await expect.poll(() => answer.locator('li').count()).toBe(2);
    await expect.poll(() => answer.locator('td').allInnerTexts()).toEqual(['Jane', '3']);
    await answer.getByText('<img src=x onerror=alert(1)>').waitFor();
    await answer.locator('pre').getByText('U+202E').waitFor();
    expect(await answer.locator('img, script, iframe').count()).toBe(0);
    const links = await answer
      .getByRole('link')
      .evaluateAll((all) => all.map((link) => [link.textContent, link.getAttribute('href')]));
    expect(links).toEqual([
      ['web', 'https://example.com/a'],
      ['picture', 'https://example.com/p.png'],
    ]);
    await checkAccessibility(page, '.markdown');
    await page.getByRole('link', { name: 'Session’s log' }).click();
    await page.getByRole('complementary').getByText(q).waitFor();
    vendor.behave({ kind: 'answer' });
  });

  test('a completion is tried out, and the quota moves by what it took', async () => {
    const { vendor, open, checkAccessibility } = the();
    const page = await open('desk/completions', { width: 380, height: 800 });
    const used = async () => {
      const text = (await page.locator('.quota-bar').first().locator('.number').first().textContent()) ?? '';
      return Number(text.split(' of ')[0]?.replaceAll(',', ''));
    };
    await page.locator('.quota-bar').first().waitFor();
    const before = await used();
    vendor.behave({ kind: 'answer', text: 'A good thing.', usage, finish: 'length' });
    await page.getByLabel('Message 2', { exact: true }).fill('What is a history good for?');
    await page.getByRole('button', { name: 'Complete' }).click();
    await page.getByText('A good thing.').waitFor();
    await page.getByText('Cut off').waitFor();
    await page.getByText('412 tokens in, 96 out').waitFor();
    await expect.poll(used).toBe(before + usage.input);
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    vendor.behave({ kind: 'answer' });
  });

  test('what calls cost is shown over time and by model, client, agent and user, and each call in a list', async () => {
    const { vendor, open, checkAccessibility } = the();
    const call = await caller(the());
    await call('PUT', `${agents}/prices`, { name: { en: 'Prices' }, llmConfig: { provider: 'shared' } });
    vendor.behave({ kind: 'answer', usage });
    await call('POST', '/ai-service/demo/agentic/chat', { agentId: 'prices', message: 'Hello' });
    vendor.behave({ kind: 'answer' });
    const page = await open('desk/costs', { width: 380, height: 800 });
    await page.locator('tbody').getByText('gpt-5.4-mini').waitFor();
    await page.locator('.bar-chart canvas').waitFor();
    await waitForQuiet(page);
    const chart = page.getByRole('application', { name: 'Costs over time by model, in US dollars' });
    await chart.focus();
    await page.keyboard.press('ArrowLeft');
    await expect
      .poll(() => page.locator('.bar-chart-readout').textContent())
      .toMatch(/\$0\.\d+ · gpt-5\.4-mini \$0\.\d+$/);
    await page.getByLabel('By', { exact: true }).selectOption('agent');
    await page.locator('tbody').getByText('Prices').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    await page.getByRole('link', { name: 'Calls', exact: true }).click();
    await page.getByRole('button', { name: 'Chats' }).click();
    await page
      .getByRole('row', { name: /Prices 412 in, 96 out \$0\.\d+/ })
      .first()
      .waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    await page.setViewportSize({ width: 1280, height: 800 });
    const hidden = page.getByLabel('Table of calls').evaluate((table) => table.scrollWidth - table.clientWidth);
    expect(await hidden).toBe(0);
  });

  test('a budget is made in a dialog that tells faults, shows what is used of it, is changed and deleted', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('desk/budgets', { width: 380, height: 800 });
    await page.getByText('There is no budget yet').waitFor();
    await page.getByRole('button', { name: 'New budget' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Id').fill('whole');
    await dialog.getByLabel('Limit').fill('fifty');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('US dollars, such as 50 or 0.25.').waitFor();
    await checkAccessibility(page, 'dialog');
    await dialog.getByLabel('Limit').fill('50');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('of $50.00').waitFor();
    await page.getByRole('button', { name: 'Edit whole' }).click();
    await dialog.getByLabel('Unit').selectOption('tokens');
    await dialog.getByLabel('Limit').fill('2000000');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('of 2,000,000').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    await page.getByRole('button', { name: 'Delete whole' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There is no budget yet').waitFor();
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
