import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { nameOfPath } from '../../../src/recording/path-names.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { arbitraryHistory, type HistorySketch } from '../../support/oracle/history-arbitrary.ts';
import { checkLaw, someOf } from '../../support/oracle/law.ts';
import { arbitraryQuery } from '../../support/oracle/query-arbitrary.ts';
import { matches } from '../../support/oracle/query-evaluator.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const tenant = 'alpha';
const histories = 3;
const queriesOfHistory = 9;
const lengths = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };

type Entry = Omit<Change, 'identity'>;

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const token = await server.token(tenant, { scope: 'changelog.changelog_manage' });

test('buckets, facets and others equal the counts of an evaluator that tests every entry', async () => {
  const scenario = arbitraryHistory([tenant], now, { who: true }).chain((history) =>
    fc.record({
      history: fc.constant(history),
      asked: someOf(
        fc.record({
          query: arbitraryQuery(history.vocabulary),
          buckets: fc.constantFrom(1, 2, 7, 60, 500),
          timeZone: fc.constantFrom(undefined, 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Apia'),
          field: fc.constantFrom('entity' as const, 'type' as const, 'actor' as const, 'path' as const),
          size: fc.constantFrom(1, 3, 100),
        }),
        queriesOfHistory,
      ),
    }),
  );
  await checkLaw(scenario, { runs: histories }, async ({ history, asked }) => {
    const recorded = await recordAnew(history);
    for (const { query, buckets, timeZone, field, size } of asked) {
      const q = query.text;
      const parsed = parseQuery(q, changelogDialect);
      const matching = recorded.filter((entry) => matches(parsed, entry, now));
      const histogram = await ask<Histogram>('histogram', {
        q,
        buckets: String(buckets),
        ...(timeZone === undefined ? {} : { timeZone }),
      });
      checkHistogram({ q, timeZone }, histogram, matching, buckets);
      const facets = await ask('facets', { q, field, size: String(size) });
      expect({ q, ...facets }).toEqual({ q, ...facetsOf(matching, field, size) });
    }
  });
});

interface Histogram {
  from: string;
  to: string;
  interval: { unit: keyof typeof lengths; count: number };
  totalElements: number;
  buckets: { at: string; count: number; create: number; update: number; delete: number }[];
  after: number;
}

interface Asked {
  q: string;
  timeZone: string | undefined;
}

function checkHistogram(
  { q, timeZone }: Asked,
  found: Histogram,
  matching: readonly Entry[],
  maxBuckets: number,
): void {
  const { interval, buckets } = found;
  const [from, to] = [Date.parse(found.from), Date.parse(found.to)];
  expect(buckets.length).toBeLessThanOrEqual(maxBuckets);
  const inside = matching.filter(({ at }) => at <= to);
  expect({ q, total: found.totalElements, after: found.after }).toEqual({
    q,
    total: matching.length,
    after: matching.length - inside.length,
  });
  /** Units between 1970 and a moment, by the zone's calendar if they are days. */
  const unitOf = (moment: number) =>
    Math.floor((interval.unit === 'day' ? localTimeOf(moment, timeZone) : moment) / lengths[interval.unit]);
  const first = Math.floor(unitOf(from) / interval.count);
  for (const [index, bucket] of buckets.entries()) {
    const begin = Date.parse(bucket.at);
    const number = first + index;
    expect([unitOf(begin), unitOf(begin - 1)]).toEqual([number * interval.count, number * interval.count - 1]);
    const own = inside.filter(({ at }) => Math.floor(unitOf(at) / interval.count) === number);
    const ofType = (type: string) => own.filter((entry) => entry.type === type).length;
    expect({ q, timeZone, ...bucket }).toEqual({
      q,
      timeZone,
      at: bucket.at,
      count: own.length,
      create: ofType('create'),
      update: ofType('update'),
      delete: ofType('delete'),
    });
  }
  if (inside.length > 0) expect(from).toBeLessThanOrEqual(Math.min(...inside.map(({ at }) => at)));
}

const clocks = new Map<string, Intl.DateTimeFormat>();

/** The zone's local time at a moment, read as UTC; whole seconds, in milliseconds. */
function localTimeOf(moment: number, timeZone = 'UTC'): number {
  const known = clocks.get(timeZone);
  const clock = known ?? new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  clocks.set(timeZone, clock);
  return Date.parse(`${clock.format(moment).replace(' ', 'T')}Z`);
}

function facetsOf(matching: readonly Entry[], field: 'entity' | 'type' | 'actor' | 'path', size: number): object {
  const valuesOf = (entry: Entry) =>
    field === 'path' ? new Set(Object.keys(JSON.parse(entry.paths)).map(nameOfPath)) : [entry[field]];
  const groups = Map.groupBy(
    matching.flatMap((entry) => [...valuesOf(entry)]),
    (value) => value,
  );
  const counted = [...groups].map(([value, entries]) => ({ value, count: entries.length }));
  counted.sort((a, b) => b.count - a.count || Buffer.compare(Buffer.from(a.value), Buffer.from(b.value)));
  const values = counted.slice(0, size);
  const left = counted.slice(size);
  // For paths, `others` is the number of values left out.
  const others = field === 'path' ? left.length : left.reduce((sum, { count }) => sum + count, 0);
  return { field, totalElements: matching.length, values, others };
}

/** Empties the tenant, records the history, and returns its entries. */
async function recordAnew({ batches }: HistorySketch): Promise<Entry[]> {
  await server.database.pool.query(
    // No truncate: it would wait for an index build of the service, which waits for all other transactions.
    `delete from change_related; delete from change_entry; delete from change_delta; delete from change_tally;
     update change_folded set folds = folds + 1`,
  );
  const recorded: Entry[] = [];
  for (const { changes, fold } of batches) {
    const record = createRecorder(server.context.db, tenant, () => now);
    await record(changes.map((change) => ({ ...change, identity: randomBytes(16) })));
    recorded.push(...changes);
    if (fold) await foldHistory(server.context.db, tenant);
  }
  return recorded;
}

async function ask<Answer = object>(operation: string, parameters: Record<string, string>): Promise<Answer> {
  const response = await server.call(`/changelog/${tenant}/${operation}?${new URLSearchParams(parameters)}`, { token });
  const body = await response.json();
  expect({ operation, parameters, status: response.status, ...(response.status === 200 ? {} : { body }) }).toEqual({
    operation,
    parameters,
    status: 200,
  });
  return body as Answer;
}
