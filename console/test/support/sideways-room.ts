import type { Page } from 'playwright-core';

/** The pixels that a page is wider than its window. */
export async function sidewaysRoom(page: Page): Promise<number> {
  return await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}
