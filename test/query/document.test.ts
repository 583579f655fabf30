import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { QueryError } from '../../src/query/query-error.ts';
import { entriesOf, examplesOf } from '../support/oracle/query-document.ts';
import { matches } from '../support/oracle/query-evaluator.ts';
import { faultOf } from '../support/oracle/query-parsing.ts';

const document = await readFile('docs/query-language.md', 'utf8');
const entries = entriesOf(document);
const now = Date.UTC(2026, 9, 1);

it('the document has its entries and its examples', () => {
  expect(entries).toHaveLength(9);
  expect(examplesOf(document).length).toBeGreaterThan(50);
});

it('the error shown in the document is the one that its query has', () => {
  const [, shown = ''] = /^```json\n(.*?)^```$/ms.exec(document) ?? [];
  const { status, type, message, details } = faultOf('entity:order status:OPEN');
  expect(JSON.parse(shown)).toEqual({ status, type, message, details });
});

describe('an example of docs/query-language.md does what it says', () => {
  for (const { query, outcome } of examplesOf(document)) {
    it(`${query} => ${outcome}`, () => {
      const answer = answerTo(query);
      if (outcome.startsWith('400 ')) expect(answer).toContain(outcome.slice('400 '.length));
      else expect(answer).toBe(outcome);
    });
  }
});

/** The numbers of the entries found, `none`, or the message of the error. */
function answerTo(text: string): string {
  try {
    const query = parseQuery(text, changelogDialect);
    const found = entries.flatMap((entry, index) => (matches(query, entry, now) ? [index + 1] : []));
    return found.join(' ') || 'none';
  } catch (error) {
    if (error instanceof QueryError) return error.message;
    throw error;
  }
}
