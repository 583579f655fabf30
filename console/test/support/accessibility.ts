import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

declare global {
  var axe: { run(part: string, options: RunOptions): Promise<AxeResults> } | undefined;
}

let source: Promise<string> | undefined;

/** Fails where axe finds something, light and dark, in the whole page or in the part that a selector names. */
export async function checkAccessibility(page: Page, part = 'html'): Promise<void> {
  source ??= readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  // The policy forbids a script that is added; the browser's own tools run one all the same. A document keeps it.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(await source);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const options: RunOptions = {
      // What passes is not described: to describe it takes half of the time.
      resultTypes: ['violations'],
      // In the dark only the colours are others.
      ...(colorScheme === 'light' ? {} : { runOnly: ['color-contrast'] }),
    };
    const violations = await page.evaluate(
      async ([place, how]) => (await globalThis.axe?.run(place, how))?.violations,
      [part, options] as const,
    );
    const found = violations?.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
    );
    expect(found, colorScheme).toEqual([]);
  }
}
