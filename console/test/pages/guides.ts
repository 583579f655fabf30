import { expect, test } from 'vitest';
import { checkScrolling } from '../support/accessibility.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';

/** What a person finds at /docs/guides, which has the clothes of the console. */
export function guidesTests(the: () => ConsoleUnderTest): void {
  test('the guides are listed by purpose, and a search of their text leads to the section', async () => {
    const { server, open, checkAccessibility } = the();
    const page = await open('../docs/guides');
    const index = page.getByRole('main');
    await expect
      .poll(() => index.getByRole('heading', { level: 2 }).allInnerTexts())
      .toEqual([
        'Begin',
        'Record changes',
        'Read the history',
        'Follow the history',
        'Call models',
        'Run Annals',
        'Look inside',
        'Records of decisions',
      ]);
    await checkAccessibility(page);
    await page.getByLabel('Search the guides').fill('npm rebuild node');
    const result = page.getByRole('link', { name: 'Installing: What npm says' });
    await result.waitFor();
    await page
      .getByRole('status')
      .getByText(/^\d+ sections?/)
      .waitFor();
    await result.click();
    await expect.poll(() => page.url()).toBe(`${server.baseUrl}/docs/guides/install#what-npm-says`);
    await page.getByRole('heading', { name: 'What npm says' }).waitFor();
    const here = page.getByRole('navigation', { name: 'Guides' }).locator('[aria-current="page"]');
    await expect.poll(() => here.textContent()).toBe('Installing');
    await page.getByLabel('Search the guides').fill('zyzzyva');
    await page.getByRole('status').getByText('0 sections').waitFor();
    await page.getByLabel('Search the guides').fill('');
    await page.getByRole('navigation', { name: 'Guides' }).getByRole('link', { name: 'Concepts' }).waitFor();
  });

  test('on a narrow screen a guide has its room, and everything that scrolls is reached by the keyboard', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('../docs/guides/operations', { width: 380, height: 800 });
    expect(await sidewaysRoom(page)).toBe(0);
    await checkScrolling(page);
    await page.getByText('All guides').click();
    const guides = page.getByRole('navigation', { name: 'Guides' });
    await guides.getByRole('link', { name: 'Recording over HTTP' }).click();
    await page.getByRole('heading', { level: 1, name: 'Recording over HTTP' }).waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
  });
}
