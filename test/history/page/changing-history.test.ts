import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createFindPage } from '../../../src/history/search/find-page.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';

const tenant = 'acme';
const minute = 60_000;
const day = 86_400_000;
const begun = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

const history = closeAfterAll(await openTestHistory(tenant, () => begun));
const { database, regexes } = history;

const lastWeek = begun - 7 * day;
const queries: [q: string, matches: (change: Change) => boolean][] = [
  ['', () => true],
  ['entity:order', (change) => change.entity === 'order'],
  ['actor:p*', (change) => change.actor.startsWith('p')],
  ['entity:site actor:~^p', (change) => change.entity === 'site' && change.actor.startsWith('p')],
  [
    'compoundLogicalQuery:((entity:site actor:~^p) OR (entity:(order, quote)))',
    (change) => change.entity !== 'site' || change.actor.startsWith('p'),
  ],
  [
    `actor:~^p occurredAt:(>="${new Date(begun - 40 * day).toISOString()}" AND <"${new Date(lastWeek).toISOString()}")`,
    (change) => change.actor.startsWith('p') && change.at < lastWeek,
  ],
  [`occurredAt:<"${new Date(lastWeek).toISOString()}"`, (change) => change.at < lastWeek],
];

/** The start of windows, and the cells and minute around it. */
function timeOf(below: (limit: number) => number, now: number): number {
  const start = now - 30 * day;
  switch (below(5)) {
    case 0:
      return start + below(2 * minute) - minute;
    case 1:
      return Math.ceil(start / minute) * minute + below(3) - 1;
    case 2:
      return start + below(day);
    case 3:
      return now - below(30 * day);
    default:
      return now + below(1_000);
  }
}

test('every page matches the history at that moment', async () => {
  const random = new Random();
  const below = (limit: number) => random.below(limit);
  let now = begun;
  const changes: Change[] = [];
  let horizon = 0;
  const findPage = createFindPage({ pool: database.pool, db: database.db, regexes, now: () => now });
  const record = createRecorder(database.db, tenant, () => now);

  for (let step = 0; step < trials(10); step++) {
    const act = below(10);
    if (act < 4) {
      // Large batches make cells dense, and fill the first minute beyond counting entries one by one.
      const count = [1, 3, 80, 1_200][below(4)] ?? 1;
      const crowd = below(6) === 0 ? now - 30 * day + below(minute) : undefined;
      const added = Array.from({ length: count }, (): Change => {
        const entity = ['order', 'site', 'quote'][below(3)] ?? 'order';
        return {
          identity: randomBytes(16),
          at: Math.max(horizon, crowd ?? timeOf(below, now)),
          type: 'update',
          entity,
          entityId: String(below(50)),
          actor: `${['p', 'q'][below(2)]}${below(step + 1)}`,
          related: [],
          paths: '{}',
        };
      });
      await record(added);
      changes.push(...added);
    } else if (act < 6) {
      await foldHistory(database.db, tenant);
    } else if (act < 8) {
      now += [1, 700, minute, 5 * minute][below(4)] ?? 1;
    } else if (act === 8 && step > 8) {
      horizon = Math.floor((now - ([30, 29, 3][below(3)] ?? 30) * day) / day) * day;
      await database.pool.query(
        `insert into change_retention (tenant, horizon) values ($1, $2)
           on conflict (tenant) do update set horizon = greatest(change_retention.horizon, excluded.horizon)
           returning horizon`,
        [tenant, horizon],
      );
      const { rows } = await database.pool.query<{ horizon: number }>('select horizon from change_retention');
      horizon = rows[0]?.horizon ?? 0;
    }
    const ordered = changes
      .map((change, sequence) => ({ ...change, sequence }))
      .sort((a, b) => b.at - a.at || b.sequence - a.sequence);
    for (const [q, matches] of queries) {
      const from = q.includes('>=') ? begun - 40 * day : now - 30 * day;
      const matching = ordered.filter((change) => change.at >= Math.max(from, horizon) && matches(change));
      const query = parseQuery(q, changelogDialect);
      const check = async (skip: number, limit: number) => {
        const page = await findPage(tenant, query, { skip, size: limit });
        const entries = page.entries.map(({ at, entity, entityId, actor }) => ({ at, entity, entityId, actor }));
        const expected = matching
          .slice(skip, skip + limit)
          .map(({ at, entity, entityId, actor }) => ({ at, entity, entityId, actor }));
        expect({ step, q, skip, limit, total: page.total, entries }).toEqual({
          step,
          q,
          skip,
          limit,
          total: matching.length,
          entries: expected,
        });
      };
      // Then some pages forward and back from a random place.
      await check(0, 20);
      await check(0, 20);
      if (below(4) > 0) continue;
      const size = [1, 7, 20, 150][below(4)] ?? 20;
      const somewhere = below(matching.length + size + 2);
      for (const pages of [0, 1, 2, 0, -1, 30]) await check(Math.max(0, somewhere + pages * size), size);
      await check(Math.max(0, matching.length - size), size);
      await check(Math.max(0, matching.length - size - 3), size);
    }
  }
});

test('caches are dropped when the database is restored to an earlier state', async () => {
  const restored = 'restored';
  await createTenant(database.db, restored);
  const findPage = createFindPage({ pool: database.pool, db: database.db, regexes, now: () => begun });
  const change = changeOf({ at: begun - 1, actor: 'before' });
  await createRecorder(database.db, restored, () => begun)([change, { ...change, identity: randomBytes(16) }]);
  await foldHistory(database.db, restored);
  const ask = async (q: string) => {
    const { total, entries } = await findPage(restored, parseQuery(q, changelogDialect), { skip: 0, size: 20 });
    return { total, actors: entries.map(({ actor }) => actor) };
  };
  for (let time = 0; time < 2; time++) expect(await ask('')).toEqual({ total: 2, actors: ['before', 'before'] });

  // As if replaced by another history, in which the same numbers mean something else.
  await database.pool.query(`delete from change_entry where tenant = $1 and identity = $2`, [
    restored,
    Buffer.from(change.identity).toString('hex'),
  ]);
  await database.pool.query('delete from change_tally where tenant = $1', [restored]);
  await database.pool.query(`update change_actor set name = 'after' where tenant = $1`, [restored]);
  await database.pool.query(
    `insert into change_delta (tenant, ats, sequences, kinds, actors)
       select tenant, array[at], array[sequence], array[kind], array[actor] from change_entry where tenant = $1`,
    [restored],
  );
  await database.pool.query(
    `create or replace function change_lineage(of_tenant text) returns text language sql stable as $$ select 'another' $$`,
  );
  expect(await ask('')).toEqual({ total: 1, actors: ['after'] });
  expect(await ask('actor:after')).toEqual({ total: 1, actors: ['after'] });
  expect(await ask('actor:before')).toEqual({ total: 0, actors: [] });
});
