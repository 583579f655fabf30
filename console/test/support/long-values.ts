import type { Page } from 'playwright-core';
import { trials } from '../../../test/support/oracle/trials.ts';
import { type Answers, address } from './answered-page.ts';

/** What a person does with values that are longer than any page should show at once. */
export interface LongValue {
  readonly title: string;
  readonly answers: Answers;
  work(page: Page): Promise<void>;
}

/** Paths or members of one value. ANNALS_TRIALS=4: 200,000 of them, and a text of 16 MiB. */
const many = trials(50_000);
const manyWritten = many.toLocaleString('en');
const last = `${many - 1}.10`;

function longText(): LongValue {
  const text = `${'lorem ipsum '.repeat(7 * many)}the end`;
  const characters = text.length.toLocaleString('en');
  return {
    title: 'a text of many MiB can be read to its end',
    answers: answersOf([entry(1, `"text":{"after":"${text}"}`)]),
    async work(page) {
      const panel = page.getByRole('complementary');
      const end = panel.locator('.line', { hasText: 'the end' });
      await page.goto(`${address}history?entry=1`);
      await panel.getByRole('button', { name: `all ${characters} characters` }).click();
      await panel.getByRole('region', { name: `All ${characters} characters` }).focus();
      await page.keyboard.press('End');
      await end.waitFor();
      await panel.getByRole('button', { name: 'JSON', exact: true }).click();
      await panel.getByRole('region', { name: 'The change as JSON' }).focus();
      await page.keyboard.press('End');
      await end.waitFor();
    },
  };
}

function manyPaths(): LongValue {
  const paths = Array.from({ length: many }, (_, index) => `"field${index}":{"after":${index}.10}`);
  return {
    title: 'each of very many paths can be reached',
    answers: answersOf([entry(1, paths.join(','))]),
    async work(page) {
      const panel = page.getByRole('complementary');
      await page.goto(`${address}history`);
      await page.locator('.entry-link').click();
      await panel.locator('.path-item').nth(29).waitFor();
      await panel.getByLabel('Go to').fill(String(many));
      await page.keyboard.press('Enter');
      await panel.getByText(last, { exact: true }).waitFor();
      await panel.getByRole('searchbox', { name: 'Find a path' }).fill('field12345');
      await panel.getByText('12345.10', { exact: true }).waitFor();
      await panel.getByRole('button', { name: 'JSON', exact: true }).click();
      await panel.getByRole('region', { name: 'The change as JSON' }).focus();
      await page.keyboard.press('End');
      await panel.locator('.line', { hasText: last }).waitFor();
    },
  };
}

function manyMembers(): LongValue {
  const members = Array.from({ length: many }, (_, index) => `"field${index}":${index}.10`).join(',');
  return {
    title: 'a value of very many members is opened, compared and shown by its fields',
    answers: {
      // A list has long values cut.
      ...answersOf([entry(1, '"all":{"after":"{…"}')]),
      entries: entry(1, `"all":{"after":{${members}}}`),
      documents: `{"entity":"long","entityId":"1","at":"2026-11-22T10:00:00.000Z","exists":true,"complete":true,"document":{"all":{${members}}},
      "changes":2,"lastChange":{"at":"2026-11-22T10:00:00.000Z","type":"create","actor":"Robin"}}`,
    },
    async work(page) {
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
    },
  };
}

function longList(): LongValue {
  const entries = Array.from({ length: 100 }, (_, index) => {
    const paths = Array.from(
      { length: 1_000 },
      (_none, field) => `"field${field}":{"before":"the words of ${index}","after":"the words of ${index + 1}"}`,
    );
    return entry(index + 1, paths.join(','));
  });
  const document = `{${Array.from({ length: 1_000 }, (_, field) => `"field${field}":"words"`).join(',')}}`;
  return {
    title: '100 changes of 1,000 paths each are in the list and the life of a document',
    answers: {
      ...answersOf(entries),
      documents: `{"entity":"long","entityId":"1","at":"2026-11-22T10:00:00.000Z","exists":true,"complete":true,"document":${document},
      "changes":100,"lastChange":{"at":"2026-11-22T10:00:00.000Z","type":"update","actor":"Robin"}}`,
    },
    async work(page) {
      await page.goto(`${address}history`);
      await page.locator('.entry-row').nth(99).waitFor();
      await page.locator('.entry-link').first().click();
      await page.locator('.path-item mark').nth(58).waitFor();
      await page.goto(`${address}document?entity=long&id=1&show=fields`);
      await page.getByRole('row', { name: /^field59 / }).waitFor();
    },
  };
}

export const longValues: readonly LongValue[] = [longText(), manyPaths(), manyMembers(), longList()];

export function entry(ref: number, paths: string): string {
  return `{"at":"2026-11-22T10:00:00.000Z","type":"update","entity":"long","entityId":"1","actor":"Robin","paths":{${paths}},"related":[],"ref":"${ref}"}`;
}

export function answersOf(entries: readonly string[]) {
  return {
    changelogs: `{"items":[${entries.join(',')}],"page":1,"size":50,"totalElements":${entries.length},"totalPages":1}`,
    entries: entries[0] ?? '',
    histogram: `{"from":"2026-11-22T10:00:00.000Z","to":"2026-11-22T11:00:00.000Z","interval":{"unit":"hour","count":1},"totalElements":1,
      "buckets":[{"at":"2026-11-22T10:00:00.000Z","count":1,"create":0,"update":1,"delete":0}],"after":0}`,
    facets: '{"field":"type","totalElements":1,"values":[{"value":"update","count":1}],"others":0}',
  };
}
