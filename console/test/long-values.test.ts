import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { maxAnswerBytes } from '../src/api/failure.ts';
import { address, openAnswered } from './support/answered-page.ts';
import { startChromium } from './support/chromium.ts';
import { answersOf, entry, longValues } from './support/long-values.ts';

/** Elements of any page. How long a task of the page takes is measured by bench/console. */
const maxElements = 4_000;

let browser: Browser;

beforeAll(async () => {
  browser = await startChromium();
});

afterAll(async () => {
  await browser?.close();
});

test.each(longValues)('$title, and the page has few elements', async ({ answers, work }) => {
  const page = await openAnswered(browser, answers);
  await work(page);
  expect(await page.locator('*').count()).toBeLessThan(maxElements);
  await page.context().close();
});

test('an answer that would end the page is not read: the page says how long it is, and offers the download', async () => {
  const page = await openAnswered(browser, answersOf([entry(1, '"a":{"after":1}')]));
  let length = maxAnswerBytes + 1;
  await page.route('**/documents?*', (route) =>
    // The length that a header tells counts. An answer of it would take the test longer than the page.
    route.fulfill({ headers: { 'content-type': 'application/json', 'content-length': `${length}` }, body: state }),
  );
  await page.goto(`${address}document?entity=long&id=1`);
  const failure = page
    .getByRole('alert')
    .filter({ hasText: 'This answer has 64.0 MiB. The console shows at most 64.0 MiB.' });
  const link = failure.getByRole('link', { name: 'Download' });
  expect(await link.getAttribute('href')).toBe(`${address}api/changelog/acme/documents?entity=long&entityId=1`);
  expect(await link.getAttribute('download')).toBe('annals.json');
  // Nothing looks as if more were to come.
  expect(await page.locator('.skeleton').count()).toBe(0);
  length = maxAnswerBytes;
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.locator('.json-tree').waitFor();
  await page.context().close();
});

const state = `{"entity":"long","entityId":"1","at":"2026-11-22T10:00:00.000Z","exists":true,"complete":true,"document":{"a":1},
  "changes":1,"lastChange":{"at":"2026-11-22T10:00:00.000Z","type":"create","actor":"Robin"}}`;
