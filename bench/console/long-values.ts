import { openAnswered } from '../../console/test/support/answered-page.ts';
import { startChromium } from '../../console/test/support/chromium.ts';
import { longValues } from '../../console/test/support/long-values.ts';
import { maxTaskTime } from '../../console/test/support/page-measures.ts';

// Prints the processor time of the longest task of the page for each long value: while it runs, the page answers no
// key.
const browser = await startChromium();
try {
  for (const { title, answers, work } of longValues) {
    const page = await openAnswered(browser, answers);
    const maxTime = await maxTaskTime(page, () => work(page));
    console.log(`${Math.round(maxTime).toString().padStart(6)} ms  ${title}`);
    await page.context().close();
  }
} finally {
  await browser.close();
}
