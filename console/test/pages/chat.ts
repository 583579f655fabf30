import { expect, test } from 'vitest';
import { vendorFormats } from '../../../test/support/vendor/vendor-formats.ts';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { findMotion, findUnaskedAnimations, sidewaysRoom } from '../support/page-measures.ts';

const agents = '/ai-service/demo/agentic/agents';
const usage = { input: 412, output: 96 };

/** What a person asks models. */
export function chatTests(the: () => ConsoleUnderTest): void {
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
    const cells = await page.locator('tbody td:last-child').allTextContents();
    const sum = cells.reduce((all, text) => all + Number(text.replaceAll(',', '')), 0);
    expect(sum).toBeGreaterThan(0);
    await expect.poll(() => page.locator('tfoot td').last().textContent()).toBe(sum.toLocaleString('en'));
    await panel.getByText('the chat was stopped', { exact: false }).waitFor();
    await checkAccessibility(page, '.side-panel');
  });

  test('an answer in Markdown is laid out, nothing of it becomes markup, and its calls of tools are beside it', async () => {
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
}
