import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { QueryError } from '../../src/query/query-error.ts';
import { entriesOf, examplesOf, peopleOf } from '../support/oracle/query-document.ts';
import { type HistoryEntry, matches } from '../support/oracle/query-evaluator.ts';
import { faultOf } from '../support/oracle/query-parsing.ts';

const document = await readFile('docs/query-language.md', 'utf8');
const entries = new Map(entriesOf(document).map((entry, index) => [String(index + 1), entry]));
const people = peopleOf(document);
const now = Date.UTC(2026, 9, 1);

it('the document has its entries and its examples', () => {
  expect(entries.size).toBe(9);
  expect(people.size).toBe(5);
  expect(examplesOf(document).length).toBeGreaterThan(50);
  expect(examplesOf(document, 'query people').length).toBeGreaterThan(15);
});

it('the error shown in the document is the one that its query has', () => {
  const [, shown = ''] = /^```json\n(.*?)^```$/ms.exec(document) ?? [];
  const { status, type, message, details } = faultOf('entity:order status:OPEN');
  expect(JSON.parse(shown)).toEqual({ status, type, message, details });
});

describe('an example of docs/query-language.md does what it says', () => {
  const examples = [
    ...examplesOf(document).map((example) => ({ ...example, among: entries })),
    ...examplesOf(document, 'query people').map((example) => ({ ...example, among: people })),
  ];
  for (const { query, outcome, among } of examples) {
    it(`${query} => ${outcome}`, () => {
      const answer = answerTo(query, among);
      if (outcome.startsWith('400 ')) expect(answer).toContain(outcome.slice('400 '.length));
      else expect(answer).toBe(outcome);
    });
  }
});

/** What the document calls the entries found, `none`, or the message of the error. */
function answerTo(text: string, among: ReadonlyMap<string, HistoryEntry>): string {
  try {
    const query = parseQuery(text, changelogDialect);
    const found = [...among].flatMap(([label, entry]) => (matches(query, entry, now) ? [label] : []));
    return found.join(' ') || 'none';
  } catch (error) {
    if (error instanceof QueryError) return error.message;
    throw error;
  }
}
