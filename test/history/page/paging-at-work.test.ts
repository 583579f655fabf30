import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { repeat } from '../../../src/core/repeat.ts';
import { dropPortion, setRetention } from '../../../src/history/retention/retention.ts';
import { createFindPage } from '../../../src/history/search/find-page.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import type { Selection } from '../../../src/history/search/plan/tally-plan.ts';
import { readTalliedPage } from '../../../src/history/search/single-statement.ts';
import { foldHistory, foldPortion } from '../../../src/history/upkeep/fold.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import type { Statements } from '../../../src/postgres/statements.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';

const random = new Random();

const minute = 60_000;
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** Pages that each of four readers asks for. */
const reads = trials(10);

const history = closeAfterAll(await openTestHistory('acme', () => now));

const below = (limit: number) => random.below(limit);

test(
  'every page of what does not change stays the same while others record, fold and drop, for all readers',
  async () => {
    const { database, regexes } = history;
    const tenant = 'acme';
    const others = createPool(database.url, { applicationName: 'annals test writers', maximum: 6 });
    const db = createDatabase(others);
    const record = createRecorder(db, tenant, () => now);
    const from = now - 20 * day;
    // Crowds of one millisecond, of one minute, and others up to days apart, some in the future.
    const kept = Array.from({ length: 1_500 }, (): Change => {
      const at = [from + 5 * day, from + 7 * day + below(minute), from + below(20 * day), now + below(day)][below(4)];
      return changeOf({
        at: at ?? from,
        entity: `kept${below(3)}`,
        entityId: String(below(99)),
        actor: `k${below(9)}`,
      });
    });
    for (let place = 0; place < kept.length; place += 50) await record(kept.slice(place, place + 50));
    const ordered = kept
      .map((change, sequence) => ({ ...change, sequence }))
      .sort((one, other) => other.at - one.at || other.sequence - one.sequence);
    const edge = from + 7 * day + 30_000;
    const asked: [q: string, matches: (change: Change) => boolean][] = [
      ['entity:kept1', (change) => change.entity === 'kept1'],
      ['actor:k1', (change) => change.actor === 'k1'],
      ['actor:k*', () => true],
      ['entity:kept2 actor:(k1, k2, k3)', ({ entity, actor }) => entity === 'kept2' && /^k[123]$/.test(actor)],
      [`entity:kept* occurredAt:<"${new Date(edge).toISOString()}"`, (change) => change.at < edge],
      [
        `actor:k* occurredAt:(>="${new Date(edge - 40).toISOString()}" AND <"${new Date(edge).toISOString()}")`,
        (change) => change.at < edge && change.at >= edge - 40,
      ],
      [`actor:k* occurredAt:>="2020-01-01T00:00:00Z"`, () => true],
    ];
    const stop = new AbortController();
    const failures: unknown[] = [];
    const until = (task: () => Promise<unknown>, pause: number) =>
      repeat({
        every: pause,
        signal: stop.signal,
        run: async () => void (await task()),
        onError: (error) => failures.push(error),
      });
    let keepDays = 60;
    const work = [
      until(async () => {
        const at = () => (below(2) === 0 ? from : now) - below(30 * day);
        await record(Array.from({ length: 1 + below(30) }, () => changeOf({ at: at(), actor: `other${below(200)}` })));
      }, 15),
      until(() => foldPortion(db, tenant, 1 + below(400)), 40),
      until(async () => {
        keepDays = Math.max(21, keepDays - 1);
        const { horizon } = await setRetention(db, tenant, keepDays, now);
        await dropPortion(db, tenant, horizon, { maxRows: 200 });
      }, 50),
    ];
    // Two processes; two readers of each share what it remembers.
    const processes = [
      history.findPage,
      createFindPage({ pool: database.pool, db: database.db, regexes, now: () => now }),
    ];
    const reader = async (findPage = history.findPage) => {
      let place = 0;
      for (let read = 0; read < reads && failures.length === 0; read++) {
        const [q, matches] = asked[below(asked.length)] ?? ['', () => true];
        const wanted = ordered.filter(matches);
        const size = [1, 20, 100, 500][below(4)] ?? 20;
        place = [place + size, place - size, below(wanted.length), wanted.length - size, 0][below(5)] ?? 0;
        const skip = Math.min(Math.max(0, place), wanted.length + 1);
        const page = await findPage(tenant, parseQuery(q, changelogDialect), { skip, size });
        const entries = page.entries.map(({ at, entityId, actor }) => `${at} ${entityId} ${actor}`);
        const expected = wanted.slice(skip, skip + size).map(({ at, entityId, actor }) => `${at} ${entityId} ${actor}`);
        expect({ q, skip, size, total: page.total, entries }).toEqual({
          q,
          skip,
          size,
          total: wanted.length,
          entries: expected,
        });
      }
    };
    try {
      await Promise.all([...processes, ...processes].map(reader));
    } finally {
      stop.abort();
      await Promise.all(work);
      await others.end();
    }
    expect(failures).toEqual([]);
  },
  60_000 + reads * 200,
);

/** Passes statements on and notes their names. */
function noting(names: string[]): Statements {
  return {
    async query(statement) {
      names.push(statement.name ?? '');
      return await history.database.pool.query(statement);
    },
  };
}

const scattered = new Random(1);

test.for<[spread: string, ats: readonly number[], keepDays: number]>([
  ['evenly', Array.from({ length: 600 }, (_, index) => now - 20 * day + index * 15 * minute), 90],
  [
    // The newest is hours old, and most stand in a few crowds.
    'unevenly',
    Array.from({ length: 600 }, (_, index) => now - day - Math.floor(index / 70) * 19 * 60 * minute - (index % 70)),
    90,
  ],
  // Gaps of any length, so that what is looked for is often further than the mean says.
  ['at random', Array.from({ length: 600 }, () => now - 1 - scattered.below(20 * day)), 90],
  ['over more than is kept', Array.from({ length: 1_200 }, (_, index) => now - index * 15 * minute), 10],
])('every page is one statement and has its entries where they are spread %s', async ([spread, ats, keepDays]) => {
  const { database } = history;
  const tenant = spread.replaceAll(' ', '');
  await createTenant(database.db, tenant);
  const record = createRecorder(database.db, tenant, () => now);
  await record(ats.map((at, index) => changeOf({ identity: randomBytes(16), at, actor: `a${index % 7}` })));
  await foldHistory(database.db, tenant);
  const { horizon } = await setRetention(database.db, tenant, keepDays, now);
  const dictionary = await new DictionaryCache(database.pool).get(tenant);
  const kept = ats.filter((at) => at >= horizon).toSorted((one, other) => other - one);
  const several: Selection = { actors: dictionary.actors.map(({ id }) => id), kinds: null };
  for (const selection of [{ actors: null, kinds: null }, several]) {
    for (let skip = 0; skip < kept.length + 40; skip += 20) {
      const names: string[] = [];
      const intervals = [{ since: now - 30 * day, before: null, selections: [selection] }];
      const page = { now, intervals, skip, size: 20 };
      const read = await readTalliedPage(noting(names), tenant, page, { dictionary, byNames: true });
      const found = typeof read === 'object' ? { total: read.total, ats: read.entries.map(({ at }) => at) } : read;
      expect({ skip, names, found }).toEqual({
        skip,
        names: ['tallied page'],
        found: { total: kept.length, ats: kept.slice(skip, skip + 20) },
      });
    }
  }
});
