import { expect, test } from 'vitest';
import { foldHistory, foldPortion } from '../../../src/history/upkeep/fold.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random, seed } from '../../support/oracle/random.ts';
import {
  columnsOf,
  type Entry,
  isSelected,
  randomBound,
  randomSelections,
  type Sets,
} from '../../support/oracle/selections.ts';
import { trials } from '../../support/oracle/trials.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';
import { day, firstRow, now, readEntries, recordRandom } from '../../support/server/random-history.ts';
import { checkTallyRows } from '../../support/server/tally-rows.ts';

const tenant = 'acme';

const history = closeAfterAll(await openTestHistory(tenant, () => now));
const { database } = history;

function record(random: Random, count: number, actors: number): Promise<void> {
  return recordRandom(database, tenant, { random, count, actors });
}

// The first seed always runs; it covers past failures.
test.each([
  [1, 6],
  [seed, 2],
])(
  'count, seek and page agree with what all entries say, whenever they were folded: seed %d, %d rounds',
  async (start, rounds) => {
    const random = new Random(start);
    await database.pool.query('truncate change_entry, change_related, change_delta, change_tally, change_folded');
    for (let round = 0; round < rounds; round++) {
      for (let batch = random.below(4); batch >= 0; batch--) await record(random, random.pick([3, 70, 1_500]), 60);
      // Later batches are not folded yet.
      if (random.below(3) > 0) await foldHistory(database.db, tenant, random.pick([1, 100, 2_000, 500_000]));
      if (random.below(2) > 0) await foldPartly(random);
      if (random.below(2) === 0) await record(random, random.pick([1, 40, 300]), 90);
      // Statistics of a freshly emptied table would give plans that are slow, though correct.
      await database.pool.query('analyze change_entry, change_tally, change_delta');
      const entries = await readEntries(database, tenant);
      const kinds = [...new Set(entries.map((entry) => entry.kind))];
      const actors = [...new Set(entries.map((entry) => entry.actor))];
      for (let trial = 0; trial < trials(4); trial++) {
        const selections = randomSelections(random, kinds, actors);
        const matching = entries.filter(isSelected(selections));
        await checkCount(random, selections, { entries, kinds });
        await checkSeek(random, selections, matching);
        await checkPage(random, entries, kinds, actors);
      }
    }
    await foldHistory(database.db, tenant);
    await checkTallyRows(database, tenant, await readEntries(database, tenant));
  },
);

test('tallies of rare pairs from an earlier version stay exact, and none of their entries counts twice', async () => {
  const random = new Random(seed);
  await database.pool.query('truncate change_entry, change_related, change_delta, change_tally, change_folded');
  const check = async () => {
    const entries = await readEntries(database, tenant);
    const kinds = [...new Set(entries.map((entry) => entry.kind))];
    const actors = [...new Set(entries.map((entry) => entry.actor))];
    for (let trial = 0; trial < trials(4); trial++) {
      const selections = actors.map((actor) => ({ actors: [actor], kinds: [random.pick(kinds)] }));
      await checkCount(random, selections, { entries, kinds });
    }
  };
  const foldSome = async () => {
    for (let batch = 0; batch < 4; batch++) {
      await record(random, 700, 60);
      await foldHistory(database.db, tenant, random.pick([100, 2_000, 500_000]));
    }
  };
  const definition = (entries: number) => `create or replace function change_dense_pairs() returns bigint
    language sql immutable parallel safe as 'select ${entries}::bigint'`;
  await database.pool.query(definition(1));
  await foldSome();
  await database.pool.query(definition(256));
  await check();
  await foldSome();
  await check();
  await checkTallyRows(database, tenant, await readEntries(database, tenant), { hasEarlierPairs: true });
});

// 60: the finer cell has tallies only after its first entries are gone, and then counts fewer than the coarser one
// says.
test.each([200, 60])('entries of a pair after a horizon are counted after %d before it are gone', async (dropped) => {
  await database.pool.query('truncate change_entry, change_related, change_delta, change_tally, change_folded');
  // 2026-07-25, in the coarsest cell but one from 2026-07-06 on
  const horizon = Date.UTC(2026, 6, 25);
  const recordMany = async (count: number, since: number, type: 'create' | 'update') => {
    const step = Math.floor((5 * day) / count);
    const changes = Array.from({ length: count }, (_none, index) =>
      changeOf({ at: since + index * step, type, actor: 'Mia' }),
    );
    await createRecorder(database.db, tenant, () => now)(changes);
    await foldHistory(database.db, tenant);
  };
  await recordMany(dropped, horizon - 6 * day, 'update');
  await database.pool.query('delete from change_entry where at < $1', [horizon]);
  for (const [count, type] of [
    [256 - dropped, 'create'],
    [10, 'update'],
    [300, 'create'],
  ] as const) {
    await recordMany(count, horizon + day / 3, type);
    const entries = await readEntries(database, tenant);
    const kinds = [...new Set(entries.map((entry) => entry.kind))];
    const actors = [...new Set(entries.map((entry) => entry.actor))];
    for (const kind of kinds) {
      for (const since of [horizon, horizon + day + 1, horizon + 3 * day + 77_777]) {
        const { total } = await firstRow<{ total: number }>(database, 'change_total($1, $2, $3, $4, null) as total', [
          tenant,
          [`{${actors.join(',')}}`],
          [`{${kind}}`],
          since,
        ]);
        const expected = entries.filter((entry) => entry.kind === kind && entry.at >= since).length;
        expect({ count, kind, since, total: Number(total) }).toEqual({ count, kind, since, total: expected });
      }
    }
  }
});

/**
 * More batches, some folded and some pending: a cell that becomes dense must not count the pending ones twice.
 */
async function foldPartly(random: Random): Promise<void> {
  for (let batch = random.below(12); batch >= 0; batch--) await record(random, random.pick([1, 30, 200]), 60);
  for (let portions = random.below(8); portions >= 0; portions--) {
    await foldPortion(database.db, tenant, random.pick([1, 50, 300]));
  }
}

/** Counts by range equal the counts of the entries, whatever they are grouped by. */
async function checkCount(
  random: Random,
  selections: Sets[],
  { entries, kinds }: { entries: Entry[]; kinds: number[] },
): Promise<void> {
  const bounds = Array.from({ length: 1 + random.below(6) }, () => randomBound(random, entries));
  const cuts = [...new Set([random.pick([0, randomBound(random, entries)]), ...bounds])].sort((a, b) => a - b);
  const before = cuts.length > 1 && random.below(2) === 0 ? (cuts.pop() ?? null) : null;
  const split = random.pick(['', 'kind', 'actor'] as const);
  for (const selection of selections) {
    const isAny = selection.kinds.length === 0 || selection.kinds[0] === 0;
    const ofKinds = split === 'kind' && isAny ? kinds : selection.kinds;
    const { rows } = await database.pool.query<{ key: number; range: number; entries: number }>(
      `select key, range, sum(entries)::integer as entries from change_count($1, $2, $3, $4, $5, $6)
         group by 1, 2 having sum(entries) <> 0`,
      [tenant, selection.actors, ofKinds, cuts, before, split],
    );
    const counted = new Map<string, number>();
    for (const entry of entries.filter(isSelected([selection]))) {
      const range = cuts.findLastIndex((cut) => cut <= entry.at) + 1;
      if (range === 0 || (before !== null && entry.at >= before)) continue;
      const name = `${split === '' ? 0 : entry[split]} ${range}`;
      counted.set(name, (counted.get(name) ?? 0) + 1);
    }
    const found = Object.fromEntries(rows.map(({ key, range, entries: number }) => [`${key} ${range}`, number]));
    expect({ selection, cuts, before, split, found }).toEqual({
      selection,
      cuts,
      before,
      split,
      found: Object.fromEntries(counted),
    });
  }
}

/** A checkpoint has at most `maxNewer` newer entries, and exactly as many as it reports. */
async function checkSeek(random: Random, selections: Sets[], matching: Entry[]): Promise<void> {
  if (matching.length === 0) return;
  for (const maxNewer of [0, random.below(matching.length), matching.length - 1]) {
    const call = 'change_seek($1, $2, $3, $4, 0, $5, $6)';
    const parameters = [tenant, ...columnsOf(selections), maxNewer, 2 ** 52, matching.length];
    const { moment, newer } = await firstRow<{ moment: number; newer: number }>(database, call, parameters);
    const found = matching.filter((entry) => entry.at >= moment).length;
    expect({ selections, maxNewer, newer, isNewer: newer <= maxNewer }).toEqual({
      selections,
      maxNewer,
      newer: found,
      isNewer: true,
    });
  }
}

/** A page over intervals, each with its own selections, bounded by a horizon. */
async function checkPage(random: Random, entries: Entry[], kinds: number[], actors: number[]): Promise<void> {
  const horizon = random.below(3) === 0 ? Math.floor(randomBound(random, entries) / day) * day : 0;
  const cuts = [...new Set(Array.from({ length: 1 + random.below(3) }, () => randomBound(random, entries)))];
  cuts.sort((a, b) => b - a);
  const intervals = cuts.map((since, index) => ({
    since,
    before: index === 0 && random.below(2) === 0 ? null : (cuts[index - 1] ?? since + day),
    selections: randomSelections(random, kinds, actors),
  }));
  const matching = intervals.flatMap(({ since, before, selections }) =>
    entries.filter(
      (entry) =>
        entry.at >= Math.max(since, horizon) && (before === null || entry.at < before) && isSelected(selections)(entry),
    ),
  );
  if (horizon > 0)
    await database.pool.query('insert into change_retention (tenant, horizon) values ($1, $2)', [tenant, horizon]);
  let ended = 0;
  const selectionEnds = intervals.map(({ selections }) => (ended += selections.length));
  const size = random.pick([0, 1, 7, 100]);
  const skip = random.pick([
    0,
    random.below(matching.length + 1),
    Math.max(0, matching.length - 2),
    matching.length + 5,
  ]);
  const { rows } = await database.pool.query<{ total: number; at: number; sequence: number }>(
    'select total, at, sequence from change_read($1, $2, $3, $4, $5, $6, $7, $8, $9, null, null, null)',
    [
      tenant,
      now,
      intervals.map(({ since }) => since),
      intervals.map(({ before }) => before),
      selectionEnds,
      ...columnsOf(intervals.flatMap(({ selections }) => selections)),
      skip,
      size,
    ],
  );
  await database.pool.query('delete from change_retention');
  const [head, ...page] = rows;
  const request = { intervals, horizon, skip, size };
  expect({ request, total: head?.total, page: page.map(({ at, sequence }) => ({ at, sequence })) }).toEqual({
    request,
    total: matching.length,
    page: matching.slice(skip, skip + size).map(({ at, sequence }) => ({ at, sequence })),
  });
}
