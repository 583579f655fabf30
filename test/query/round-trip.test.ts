import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { QueryError } from '../../src/query/query-error.ts';
import { hardPaths } from '../support/oracle/path-arbitrary.ts';
import { arbitraryQuery, hardExpressions, hardNames } from '../support/oracle/query-arbitrary.ts';
import { arbitraryMutatedText } from '../support/oracle/query-mutations.ts';
import { seed } from '../support/oracle/random.ts';
import { trials } from '../support/oracle/trials.ts';

const vocabulary = {
  entities: ['order', 'customer', 'group-assignment', ...hardNames],
  entityIds: ['ORD-1', 'ORD-2', '1', ...hardNames],
  actors: hardNames,
  paths: hardPaths,
  expressions: hardExpressions,
  times: [Date.UTC(2026, 7, 31, 12), Date.UTC(1971, 0, 2), Date.UTC(2024, 1, 29, 23, 59, 59, 999)],
};

it('what is written down by the grammar is read back as it was meant, positions included', async () => {
  await fc.assert(
    fc.property(arbitraryQuery(vocabulary), ({ text, query }) => {
      expect(parseQuery(text, changelogDialect)).toEqual(query);
    }),
    { numRuns: trials(1000), seed },
  );
});

it('whatever the text, the parser gives a query or a QueryError with a position in the text', async () => {
  let slowest = { milliseconds: 0, text: '' };
  let accepted = 0;
  const runs = trials(1500);
  await fc.assert(
    fc.property(arbitraryMutatedText(vocabulary), (text) => {
      const start = processorTime();
      const outcome = outcomeOf(text);
      const milliseconds = processorTime() - start;
      if (milliseconds > slowest.milliseconds) slowest = { milliseconds, text };
      if (!(outcome instanceof QueryError)) {
        accepted += 1;
        return;
      }
      expect(outcome.status).toBe(400);
      expect(outcome.details).toEqual([{ field: 'q', message: expect.stringMatching(/^At position \d+: expected ./) }]);
      expect(outcome.position).toBeGreaterThanOrEqual(1);
      expect(outcome.position).toBeLessThanOrEqual([...text].length + 1);
    }),
    { numRuns: runs, seed },
  );
  console.info(
    `of ${runs} mutated queries ${accepted} are queries; the slowest took ${slowest.milliseconds.toFixed(2)} ms: ${slowest.text}`,
  );
});

function outcomeOf(text: string): unknown {
  try {
    return parseQuery(text, changelogDialect);
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
}

/** Milliseconds that this thread has been at work, whatever else the machine does. */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
