import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { trials } from '../../test/support/oracle/trials.ts';
import { maxAnswerBytes } from '../src/api/long-answer.ts';
import { address, openAnswered } from './support/answered-page.ts';
import { startChromium } from './support/chromium.ts';
import { maxTaskTime } from './support/max-task-time.ts';

/** Milliseconds of processor time for which the page may answer no key. */
const maxTask = 100;
/** Elements of a page, whatever it shows. */
const maxElements = 4_000;

/** Paths or members of one value. ANNALS_TRIALS=4: 200,000 of them, and a text of 16 MiB. */
const many = trials(50_000);
const manyWritten = many.toLocaleString('en');
const last = `${many - 1}.10`;

let browser: Browser;

beforeAll(async () => {
  browser = await startChromium();
});

afterAll(async () => {
  await browser?.close();
});

test('a text of many MiB does not hold the page, and all of it can be read', async () => {
  const text = `${'lorem ipsum '.repeat(7 * many)}the end`;
  const characters = text.length.toLocaleString('en');
  const page = await openAnswered(browser, answersOf([entry(1, `"text":{"after":"${text}"}`)]));
  const panel = page.getByRole('complementary');
  const end = panel.locator('.line', { hasText: 'the end' });
  const longest = await maxTaskTime(page, async () => {
    await page.goto(`${address}history?entry=1`);
    await panel.getByRole('button', { name: `all ${characters} characters` }).click();
    await panel.getByRole('region', { name: `All ${characters} characters` }).focus();
    await page.keyboard.press('End');
    await end.waitFor();
    await panel.getByRole('button', { name: 'JSON', exact: true }).click();
    await panel.getByRole('region', { name: 'The entry as JSON' }).focus();
    await page.keyboard.press('End');
    await end.waitFor();
  });
  expect(await page.locator('*').count()).toBeLessThan(maxElements);
  expect(longest).toBeLessThan(maxTask);
  await page.context().close();
});

test('very many paths do not hold the page, and each of them can be reached', async () => {
  const paths = Array.from({ length: many }, (_, index) => `"field${index}":{"after":${index}.10}`);
  const page = await openAnswered(browser, answersOf([entry(1, paths.join(','))]));
  const panel = page.getByRole('complementary');
  const longest = await maxTaskTime(page, async () => {
    await page.goto(`${address}history`);
    await page.locator('.entry-link').click();
    await panel.locator('.path-item').nth(29).waitFor();
    await panel.getByLabel('Go to').fill(String(many));
    await page.keyboard.press('Enter');
    await panel.getByText(last, { exact: true }).waitFor();
    await panel.getByRole('searchbox', { name: 'Find a path' }).fill('field12345');
    await panel.getByText('12345.10', { exact: true }).waitFor();
    await panel.getByRole('button', { name: 'JSON', exact: true }).click();
    await panel.getByRole('region', { name: 'The entry as JSON' }).focus();
    await page.keyboard.press('End');
    await panel.locator('.line', { hasText: last }).waitFor();
  });
  expect(await page.locator('*').count()).toBeLessThan(maxElements);
  expect(longest).toBeLessThan(maxTask);
  await page.context().close();
});

test('a value of very many members does not hold the page: opened, compared and by its fields', async () => {
  const members = Array.from({ length: many }, (_, index) => `"field${index}":${index}.10`).join(',');
  const page = await openAnswered(browser, {
    // A list has long values cut.
    ...answersOf([entry(1, '"all":{"after":"{…"}')]),
    entries: entry(1, `"all":{"after":{${members}}}`),
    documents: `{"entity":"long","entityId":"1","at":"2026-11-22T10:00:00.000Z","exists":true,"complete":true,"document":{"all":{${members}}},
      "changes":2,"lastChange":{"at":"2026-11-22T10:00:00.000Z","type":"create","actor":"Robin"}}`,
  });
  const longest = await maxTaskTime(page, async () => {
    await page.goto(`${address}history?entry=1`);
    await page.locator('summary', { hasText: manyWritten }).click();
    await page.getByText('0.10', { exact: true }).waitFor();
    await page.goto(`${address}document?entity=long&id=1&show=fields`);
    await page.getByRole('row', { name: /^all\.field59 / }).waitFor();
    await page.getByRole('button', { name: 'Document', exact: true }).click();
    await page.locator('summary', { hasText: manyWritten }).click();
    await page.getByText('0.10', { exact: true }).waitFor();
    await page.goto(`${address}document?entity=long&id=1&with=1`);
    await page.getByText('The document is the same at both moments.').waitFor();
  });
  expect(await page.locator('*').count()).toBeLessThan(maxElements);
  expect(longest).toBeLessThan(maxTask);
  await page.context().close();
});

test('100 changes of 1,000 paths each do not hold the page: neither in the list nor as the life of a document', async () => {
  const entries = Array.from({ length: 100 }, (_, index) => {
    const paths = Array.from(
      { length: 1_000 },
      (_none, field) => `"field${field}":{"before":"the words of ${index}","after":"the words of ${index + 1}"}`,
    );
    return entry(index + 1, paths.join(','));
  });
  const document = `{${Array.from({ length: 1_000 }, (_, field) => `"field${field}":"words"`).join(',')}}`;
  const page = await openAnswered(browser, {
    ...answersOf(entries),
    documents: `{"entity":"long","entityId":"1","at":"2026-11-22T10:00:00.000Z","exists":true,"complete":true,"document":${document},
      "changes":100,"lastChange":{"at":"2026-11-22T10:00:00.000Z","type":"update","actor":"Robin"}}`,
  });
  const longest = await maxTaskTime(page, async () => {
    await page.goto(`${address}history`);
    await page.locator('.entry-row').nth(99).waitFor();
    await page.locator('.entry-link').first().click();
    await page.locator('.path-item mark').nth(58).waitFor();
    await page.goto(`${address}document?entity=long&id=1&show=fields`);
    await page.getByRole('row', { name: /^field59 / }).waitFor();
  });
  expect(await page.locator('*').count()).toBeLessThan(maxElements);
  expect(longest).toBeLessThan(maxTask);
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

function entry(ref: number, paths: string): string {
  return `{"at":"2026-11-22T10:00:00.000Z","type":"update","entity":"long","entityId":"1","actor":"Robin","paths":{${paths}},"related":[],"ref":"${ref}"}`;
}

function answersOf(entries: readonly string[]) {
  return {
    changelogs: `{"items":[${entries.join(',')}],"page":1,"size":50,"totalElements":${entries.length},"totalPages":1}`,
    entries: entries[0] ?? '',
    histogram: `{"from":"2026-11-22T10:00:00.000Z","to":"2026-11-22T11:00:00.000Z","interval":{"unit":"hour","count":1},"totalElements":1,
      "buckets":[{"at":"2026-11-22T10:00:00.000Z","count":1,"create":0,"update":1,"delete":0}],"after":0}`,
    facets: '{"field":"type","totalElements":1,"values":[{"value":"update","count":1}],"others":0}',
  };
}
