import { CompiledQuery } from 'kysely';
import type pg from 'pg';
import { beforeEach, expect, test } from 'vitest';
import { repeat } from '../../../src/core/repeat.ts';
import { dropPortion, setRetention } from '../../../src/history/retention/retention.ts';
import { createFindPage, type FindPage } from '../../../src/history/search/find-page.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { foldHistory, foldPortion } from '../../../src/history/upkeep/fold.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { givePositions } from '../../../src/recording/positions.ts';
import { createRecorder, recordChange } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import type { TestDatabase } from '../../support/server/database.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';

const random = new Random();

const tenant = 'acme';
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** Number of comparisons of a total with a full count of its snapshot. */
const reads = trials(8);

let database: TestDatabase;
let regexes: RegexMatcherPool;
let findPage: FindPage;

const history = closeAfterAll(await openTestHistory(tenant, () => now));
({ database, regexes, findPage } = history);

beforeEach(async () => {
  await database.pool.query(
    'truncate change_entry, change_related, change_delta, change_tally, change_folded, change_retention, change_kind, change_actor',
  );
  findPage = createFindPage({ pool: database.pool, db: database.db, regexes, now: () => now });
});

function change(options: Partial<Change> = {}): Change {
  return changeOf({ at: now - 1000, ...options });
}

async function total(q: string): Promise<number> {
  return (await findPage(tenant, parseQuery(q, changelogDialect), { skip: 0, size: 1 })).total;
}

test('two open transactions record changes of the same new entity type, actor and hour, and neither waits', async () => {
  const { db } = database;
  const outcomes: string[] = [];
  await inTransaction(db, async (outer) => {
    outcomes.push(
      await recordChange(outer, tenant, change({ entityId: 'a', related: [{ entity: 'g', entityId: '1' }] }), now),
    );
    await inTransaction(db, async (inner) => {
      // Waiting for the outer transaction, which ends later, would fail with a timeout.
      await inner.executeQuery(CompiledQuery.raw("set local lock_timeout = '10s'", []));
      const second = change({ entityId: 'b', related: [{ entity: 'g', entityId: '1' }] });
      outcomes.push(await recordChange(inner, tenant, second, now));
    });
    expect(await total('entity:order actor:Jane*')).toBe(1);
    await foldHistory(db, tenant);
  });
  expect(outcomes).toEqual(['recorded', 'recorded']);
  expect(await total('entity:order actor:Jane*')).toBe(2);
  expect(await total('related.entity:g type:update')).toBe(2);
  await foldHistory(db, tenant);
  expect(await total('entity:order actor:Jane*')).toBe(2);
});

test('a rolled back change is in no total, and its names are not registered', async () => {
  const { db, pool } = database;
  await createRecorder(db, tenant, () => now)([change()]);
  const rolledBack = inTransaction(db, async (transaction) => {
    await recordChange(transaction, tenant, change({ entity: 'ghost', actor: 'Nobody' }), now);
    throw new Error('rolled back');
  });
  await expect(rolledBack).rejects.toThrow('rolled back');
  for (const when of ['before', 'after']) {
    expect({ when, all: await total(''), ghosts: await total('entity:ghost') }).toEqual({ when, all: 1, ghosts: 0 });
    expect(await total('actor:*')).toBe(1);
    await foldHistory(db, tenant);
  }
  const { rows } = await pool.query(
    'select name from change_actor union all select entity from change_kind order by 1',
  );
  expect(rows).toEqual([{ name: 'Jane Doe' }, { name: 'order' }]);
});

test('a fold that is rolled back, as by a crash, has changed nothing', async () => {
  const { db } = database;
  await createRecorder(db, tenant, () => now)(Array.from({ length: 200 }, () => change()));
  await givePositions(db, tenant);
  const crash = inTransaction(
    db,
    async (transaction) => {
      await transaction.executeQuery(CompiledQuery.raw('select change_fold($1)', [tenant]));
      throw new Error('crash');
    },
    { isolation: 'repeatable read' },
  );
  await expect(crash).rejects.toThrow('crash');
  expect(await total('entity:order')).toBe(200);
  expect(await foldHistory(db, tenant)).toBe(200);
  expect(await total('entity:order')).toBe(200);
});

test('a name that is registered while a query with a pattern runs is not missed', async () => {
  const { db } = database;
  const record = createRecorder(db, tenant, () => now);
  let recorded = 0;
  let rounds = 0;
  const recorder = (async () => {
    while (recorded < 60 || rounds < 4) {
      await record([change({ entity: `type${recorded}`, actor: `actor ${recorded}` })]);
      recorded += 1;
    }
  })();
  while (recorded < 60 || rounds < 4) {
    for (const q of ['actor:actor*', 'entity:~^type', 'actor:~^a entity:t* entityId:1']) {
      const before = recorded;
      const found = await total(q);
      expect(found).toBeGreaterThanOrEqual(before);
      // The change being recorded may be visible before its recorder returns.
      expect(found).toBeLessThanOrEqual(recorded + 1);
    }
    rounds += 1;
  }
  await recorder;
  expect(await total('actor:actor*')).toBe(recorded);
});

test('a name registered by a long transaction is found once it commits', async () => {
  const { db } = database;
  const record = createRecorder(db, tenant, () => now);
  await record([change({ actor: 'first' })]);
  await inTransaction(db, async (open) => {
    await recordChange(open, tenant, change({ actor: 'old' }), now);
    await record([change({ actor: 'second' })]);
    // The dictionary is read after the later name commits and before the earlier one does.
    expect(await total('actor:*')).toBe(2);
  });
  expect(await total('actor:*')).toBe(3);
  expect(await total('actor:old')).toBe(1);
});

test('every total equals a full count of its snapshot under recording, late entries, folds and retention', async () => {
  const stop = new AbortController();
  const others = createPool(database.url, { applicationName: 'annals test writers', maximum: 9 });
  const db = createDatabase(others);
  const record = createRecorder(db, tenant, () => now);
  const below = (limit: number) => random.below(limit);
  const failures: unknown[] = [];
  const until = (task: () => Promise<unknown>, pause: number) =>
    repeat({
      every: pause,
      signal: stop.signal,
      run: async () => void (await task()),
      onError: (error) => failures.push(error),
    });
  const someChange = () =>
    change({
      at: now - below(below(3) === 0 ? 90 * day : below(2) === 0 ? 60_000 : 5),
      type: (['create', 'update', 'delete'] as const)[below(3)] ?? 'update',
      entity: `type${below(4)}`,
      entityId: String(below(50)),
      actor: `actor ${Math.floor(random.next() ** 3 * 30)}`,
    });
  await record(Array.from({ length: 1_000 }, someChange));
  let keepDays = 80;
  const work = [
    ...Array.from({ length: 4 }, () => until(() => record(Array.from({ length: 1 + below(40) }, someChange)), 30)),
    // Two processes' worth of folds, one of them in portions that leave some.
    until(() => foldPortion(db, tenant, 1 + below(60)), 3),
    until(() => foldHistory(db, tenant), 7),
    until(async () => {
      const { horizon } = await setRetention(db, tenant, keepDays, now);
      keepDays = Math.max(20, keepDays - 1);
      await dropPortion(db, tenant, horizon, { maxRows: 200 });
    }, 40),
  ];
  try {
    for (let read = 0; read < reads && failures.length === 0; read++) {
      expect(await compareInOneSnapshot(database.pool, below)).toEqual([]);
    }
  } finally {
    stop.abort();
    await Promise.all(work);
    await others.end();
  }
  expect(failures).toEqual([]);
  await foldHistory(database.db, tenant);
  expect(await compareInOneSnapshot(database.pool, below)).toEqual([]);
});

/** Differences between totals of several shapes and a count of all rows. */
async function compareInOneSnapshot(pool: pg.Pool, below: (limit: number) => number): Promise<object[]> {
  const windowStart = below(2) === 0 ? now - below(40 * day) : now - below(100);
  const actor = `actor ${below(4)}`;
  const client = await pool.connect();
  const numbers = async (text: string, values: unknown[]): Promise<number[]> => {
    const { rows } = await client.query<{ numbers: (number | string)[] }>(`select ${text} as numbers`, values);
    return rows[0]?.numbers.map(Number) ?? [];
  };
  try {
    // One snapshot for all statements. A cluster needs separate statements for a routine of ours and a count of rows.
    await client.query('begin isolation level repeatable read read only');
    const { rows } = await client.query<{ horizon: number }>('select change_horizon($1, $2) as horizon', [tenant, now]);
    const since = Math.max(windowStart, rows[0]?.horizon ?? 0);
    const actors = await numbers('array(select actor from change_actor where tenant = $1 and name = $2)', [
      tenant,
      actor,
    ]);
    const kinds = await numbers(
      "array(select kind from change_kind where tenant = $1 and entity = 'type1' order by kind)",
      [tenant],
    );
    const different: object[] = [];
    for (const [ofActors, ofKinds] of [
      [undefined, undefined],
      [undefined, kinds],
      [actors, undefined],
      [actors, kinds],
    ]) {
      if (ofActors?.length === 0 || ofKinds?.length === 0) continue;
      const actorSet = ofActors === undefined ? '{0}' : `{${ofActors}}`;
      const kindSet = ofKinds !== undefined ? `{${ofKinds}}` : ofActors === undefined ? '{0}' : '{}';
      const [ranked] = await numbers('array[change_total($1, $2::text[], $3::text[], $4, null)]', [
        tenant,
        [actorSet],
        [kindSet],
        since,
      ]);
      const counted = await client.query<{ count: number }>(
        `select count(*) as count from change_entry where tenant = $1 and at >= $2
           and ($3::bigint[] is null or actor = any ($3)) and ($4::bigint[] is null or kind = any ($4))`,
        [tenant, since, ofActors, ofKinds],
      );
      const count = counted.rows[0]?.count;
      if (ranked !== count) different.push({ ranked, count, since, actorSet, kindSet });
    }
    return different;
  } finally {
    await client.query('rollback');
    client.release();
  }
}
