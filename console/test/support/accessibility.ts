import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

declare global {
  var axe: { run(part: string, options: RunOptions): Promise<AxeResults> } | undefined;
}

let source: Promise<string> | undefined;

/** Fails where something scrolls that the keyboard does not reach. */
export async function checkScrolling(page: Page): Promise<void> {
  expect(await findViolations(page, 'html', { runOnly: ['scrollable-region-focusable'], preload: false })).toEqual([]);
}

/** The views and parts that were looked at in every way. */
const seen = new Set<string>();

/**
 * Fails where axe finds something, light and dark, in the whole page or in the part that a selector names. Of each view and
 * part it looks once at the dark, where only the colours are others, and at the style sheets.
 */
export async function checkAccessibility(page: Page, part = 'html'): Promise<void> {
  const place = `${new URL(page.url()).pathname} ${part}`;
  const isFirst = !seen.has(place);
  seen.add(place);
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await findViolations(page, part, { preload: isFirst }), 'light').toEqual([]);
  if (!isFirst) return;
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await findViolations(page, part, { runOnly: ['color-contrast'], preload: false }), 'dark').toEqual([]);
}

async function findViolations(page: Page, part: string, rules: RunOptions): Promise<string[] | undefined> {
  source ??= readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  // The policy forbids a script that is added; the browser's own tools run one all the same. A document keeps it.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(await source);
  // What passes is not described: to describe it takes half of the time.
  const options: RunOptions = { resultTypes: ['violations'], ...rules };
  const violations = await page.evaluate(async ([place, how]) => (await globalThis.axe?.run(place, how))?.violations, [
    part,
    options,
  ] as const);
  return violations?.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
  );
}
