import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { arbitraryHistory, type HistorySketch } from '../../support/oracle/history-arbitrary.ts';
import { checkLaw, someOf } from '../../support/oracle/law.ts';
import { arbitraryQuery } from '../../support/oracle/query-arbitrary.ts';
import { matches } from '../../support/oracle/query-evaluator.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const tenants = ['alpha', 'beta'];
const histories = 3;
const queriesOfHistory = 16;

const tokens = new Map<string, string>();

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
for (const tenant of tenants) tokens.set(tenant, await server.token(tenant, { scope: 'changelog.changelog_manage' }));

test('filters, order and totals agree with an evaluator that reads all entries and tests each one', async () => {
  const scenario = arbitraryHistory(tenants, now, { who: true }).chain((history) =>
    fc.record({
      history: fc.constant(history),
      asked: someOf(
        fc.record({
          query: arbitraryQuery(history.vocabulary),
          tenant: fc.constantFrom(...tenants),
          size: fc.constantFrom(1, 2, 7, 20, 100),
          place: fc.double({ min: 0, max: 1.2, noNaN: true }),
        }),
        queriesOfHistory,
      ),
    }),
  );
  await checkLaw(scenario, { runs: histories }, async ({ history, asked }) => {
    const recorded = await recordAnew(history);
    for (const { query, tenant, size, place } of asked) {
      const parsed = parseQuery(query.text, changelogDialect);
      const matching = (recorded.get(tenant) ?? []).filter((entry) => matches(parsed, entry, now));
      const page = 1 + Math.floor((place * matching.length) / size);
      const found = await ask(tenant, query.text, page, size);
      expect({ query: query.text, ...found }).toEqual({
        query: query.text,
        items: matching.slice((page - 1) * size, page * size).map(viewOf),
        page,
        size,
        totalElements: matching.length,
        totalPages: Math.ceil(matching.length / size),
      });
    }
  });
});

/** Empties the tenants, records the history, and returns the entries of each, newest first. */
async function recordAnew(history: HistorySketch): Promise<Map<string, Omit<Change, 'identity'>[]>> {
  // From here on a different history, as far as caches are concerned.
  await server.database.pool.query(
    // No truncate: it would wait for an index build of the service, which waits for all other transactions.
    `delete from change_related; delete from change_entry; delete from change_delta; delete from change_tally;
     update change_folded set folds = folds + 1`,
  );
  const recorded = new Map<string, Omit<Change, 'identity'>[]>();
  for (const { tenant, changes, fold } of history.batches) {
    const record = createRecorder(server.context.db, tenant, () => now);
    const outcomes = await record(changes.map((change) => ({ ...change, identity: randomBytes(16) })));
    expect(outcomes).toEqual(changes.map(() => 'recorded'));
    recorded.set(tenant, [...(recorded.get(tenant) ?? []), ...changes]);
    if (fold) await foldHistory(server.context.db, tenant);
  }
  // Within a millisecond the last recorded comes first: a stable sort of the reversed changes.
  for (const [tenant, changes] of recorded) {
    recorded.set(
      tenant,
      changes.toReversed().sort((a, b) => b.at - a.at),
    );
  }
  return recorded;
}

async function ask(tenant: string, q: string, page: number, size: number): Promise<object> {
  const parameters = new URLSearchParams({ q, page: String(page), size: String(size) });
  const token = tokens.get(tenant) ?? '';
  const response = await server.call(`/changelog/${tenant}/changelogs?${parameters}`, { token });
  return response.status === 200 ? ((await response.json()) as object) : { error: await response.json() };
}

function viewOf(change: Omit<Change, 'identity'>): object {
  const { at, paths, context: _context, ...rest } = change;
  return { ...rest, at: new Date(at).toISOString(), paths: JSON.parse(paths) };
}
