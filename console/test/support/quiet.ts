import type { Page } from 'playwright-core';

/** Waits until nothing is being loaded. A page that follows the history is never without a request. */
export async function waitForQuiet(page: Page): Promise<void> {
  await page.locator('.loading-line.active, .skeleton').first().waitFor({ state: 'detached' });
}
