import type { Page } from 'playwright-core';

/** Waits until nothing is being loaded, facets too: they come after the list and change what Tab reaches. A page that follows the history is never without a request. */
export async function waitForQuiet(page: Page): Promise<void> {
  await page.locator('.loading-line.active, .skeleton, .facet:not(:has(li, p))').first().waitFor({ state: 'detached' });
}
