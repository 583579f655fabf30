import type { Page } from 'playwright-core';
import { expect } from 'vitest';

/** The total that the History page shows. */
export async function totalOf(page: Page): Promise<number> {
  const total = page.locator('.history-total');
  await expect.poll(() => total.textContent()).toMatch(/^[\d,]+$/);
  return Number((await total.textContent())?.replaceAll(',', ''));
}

/** The terms of the query above the list. */
export async function chips(page: Page): Promise<string[]> {
  return (await page.locator('.chip').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ').trim());
}

/** The values of a facet with their counts. */
export async function facetCounts(page: Page, title: string): Promise<[string, number][]> {
  const facet = page.locator('.facet', { hasText: title });
  await facet.locator('.facet-value').first().waitFor();
  const texts = await facet
    .locator('.facet-value')
    .evaluateAll((values) =>
      values.map((value) => [
        value.querySelector('.facet-text')?.textContent ?? '',
        value.querySelector('.facet-count')?.textContent ?? '',
      ]),
    );
  return texts.map(([name = '', count = '']) => [name.replace(/^[+~−]/, ''), Number(count.replaceAll(',', ''))]);
}
