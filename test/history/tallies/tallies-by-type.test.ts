import { randomBytes } from 'node:crypto';
import { CompiledQuery } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { dropPortion, readHorizon, setRetention } from '../../../src/history/retention/retention.ts';
import { foldHistory, foldPortion } from '../../../src/history/tallies/fold.ts';
import { countBacklogPortion, countBacklogs } from '../../../src/history/tallies/type-backlog.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { Random } from '../../support/oracle/random.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { refuseStatements } from '../../support/server/refused-statements.ts';
import { withoutTalliesByType } from '../../support/server/tallies.ts';

const tenant = 'acme';
const minute = 60_000;
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
// How many steps a random history has; 2,000 by hand.
const steps = Number(process.env.ANNALS_TALLY_STEPS ?? 60);
const patient = 60_000 + steps * 10_000;

const random = new Random();
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  for (const name of [tenant, 'globex']) await createTenant(database.db, name);
});

afterAll(() => database.drop());

beforeEach(async () => {
  await database.pool.query(
    'truncate change_entry, change_related, change_delta, change_tally, change_folded, change_retention, change_type_backlog',
  );
});

const kindsOfTypes = ['create', 'update', 'update', 'delete'] as const;

function someChanges(): Change[] {
  const count = [1, 5, 90, 400][random.below(4)] ?? 1;
  const crowd = random.below(2) === 0 ? now - random.below(70 * day) : undefined;
  const oneType = random.below(4) === 0 ? 'create' : undefined;
  return Array.from({ length: count }, () =>
    changeOf({
      identity: randomBytes(16),
      at:
        crowd === undefined ? now - random.below(70 * day) : crowd - random.below(random.below(2) === 0 ? minute : day),
      type: oneType ?? kindsOfTypes[random.below(4)] ?? 'update',
      entity: `e${random.below(random.below(3) === 0 ? 60 : 3)}`,
      entityId: String(random.below(30)),
      actor: `p${random.below(5)}`,
    }),
  );
}

/**
 * The places of the tenant's tallies whose number of a type is not that of the entries that are folded. A cell that is not
 * counted by type yet is to have none. Of an actor only the cells come into question that have tallies by type. What is
 * before the horizon is not looked at.
 */
async function faults(): Promise<object[]> {
  const horizon = await readHorizon(database.db, tenant, now);
  const { rows } = await database.pool.query(
    `with cell as (
       select t.level, t.bucket, t.actor, change_cell(t.level) as length, change_cell(t.level + 1) as part,
              not exists (select from change_type_backlog b where b.tenant = $1
                 and (-t.level, t.bucket) >= (-b.level, b.bucket)) as is_counted
         from change_tally t where t.tenant = $1 and t.actor = 0 and t.kind = 0
       union
       select t.level, t.bucket, t.actor, change_cell(t.level), change_cell(t.level + 1), true
         from change_tally t where t.tenant = $1 and t.actor > 0 and t.kind < 0
     ), folded as (
       select e.at, e.kind, e.actor, 1 as entries from change_entry e where e.tenant = $1
       union all
       select p.at, p.kind, p.actor, -1
         from change_delta d cross join lateral unnest(d.ats, d.kinds, d.actors) as p (at, kind, actor) where d.tenant = $1
     ), wanted as (
       select cell.level, cell.actor, folded.at / cell.part as child, change_type_number(k.type) as type, sum(folded.entries) as entries
         from cell
         join folded on folded.at / cell.length = cell.bucket and cell.actor in (0, folded.actor)
         join change_kind k on k.tenant = $1 and k.kind = folded.kind
         where cell.is_counted
         group by 1, 2, 3, 4
         having sum(folded.entries) > 0
     ), found as (
       select t.level, t.actor, t.bucket * (change_cell(t.level) / change_cell(t.level + 1)) + node.child as child, t.kind as type,
              node.upto - coalesce(t.upto[node.i - 1], 0) as entries
         from change_tally t
         cross join lateral unnest(t.children, t.upto) with ordinality as node (child, upto, i)
         where t.tenant = $1 and t.kind < 0
     )
     select level, actor, child, type, wanted.entries as wanted, found.entries as found
       from wanted full join found using (level, actor, child, type)
       where wanted.entries is distinct from found.entries and child * change_cell(level + 1) >= $2`,
    [tenant, horizon],
  );
  return rows;
}

async function rowsByType(): Promise<{ ofTenant: number; ofActors: number }> {
  const { rows } = await database.pool.query<{ ofTenant: number; ofActors: number }>(
    `select count(*) filter (where actor = 0) as "ofTenant", count(*) filter (where actor > 0) as "ofActors"
       from change_tally where tenant = $1 and kind < 0`,
    [tenant],
  );
  return rows[0] ?? { ofTenant: 0, ofActors: 0 };
}

const isOpen = async () => (await database.pool.query('select from change_type_backlog')).rowCount === 1;

test(
  'in every cell the tallies by type are what is folded, with late entries, portions, retention, and a backlog',
  async () => {
    const { db } = database;
    const record = createRecorder(db, tenant, () => now);
    let keepDays = 69;
    let backlogs = 0;
    for (let step = 0; step < steps; step++) {
      const act = random.below(12);
      if (act < 5) await record(someChanges());
      else if (act < 7) await foldPortion(db, tenant, 1 + random.below(300));
      else if (act < 8) await foldHistory(db, tenant);
      else if (act < 10) await countBacklogPortion(db, tenant, [1, 100, 1_000][random.below(3)]);
      else if (act < 11) {
        await withoutTalliesByType(database.pool, tenant);
        backlogs += 1;
      } else {
        const { horizon } = await setRetention(db, tenant, keepDays, now);
        await dropPortion(db, tenant, horizon, { maxRows: 100 });
        keepDays = Math.max(40, keepDays - 1);
      }
      expect(await faults()).toEqual([]);
    }
    await record(someChanges());
    await foldHistory(db, tenant);
    await withoutTalliesByType(database.pool, tenant);
    expect(await rowsByType()).toEqual({ ofTenant: 0, ofActors: 0 });
    let portions = 1;
    while (!(await countBacklogPortion(db, tenant, 200))) portions += 1;
    expect(portions).toBeGreaterThan(4);
    expect(backlogs + portions).toBeGreaterThan(5);
    expect(await isOpen()).toBe(false);
    expect(await faults()).toEqual([]);
    expect((await rowsByType()).ofTenant).toBeGreaterThan(3);
    // The background leaves the cells of actors to the folds that write them.
    await record(Array.from({ length: 90 }, (_none, index) => changeOf({ at: now, entity: `e${index}`, actor: 'p0' })));
    await foldHistory(db, tenant);
    expect((await rowsByType()).ofActors).toBeGreaterThan(0);
    expect(await faults()).toEqual([]);
  },
  patient,
);

test('an actor has tallies by type from 8 kinds in a cell on, and keeps them', async () => {
  const { db } = database;
  const record = createRecorder(db, tenant, () => now);
  const fold = async (changes: Partial<Change>[]) => {
    await record(changes.map((change) => changeOf({ at: now, actor: 'm', ...change })));
    await foldHistory(db, tenant);
    expect(await faults()).toEqual([]);
    const { rows } = await database.pool.query(
      `select t.level::integer, array_agg(t.kind::integer order by t.kind) filter (where t.kind < 0) as types
         from change_tally t join change_actor a using (tenant, actor) where a.name = 'm' and t.kind <= 0 group by 1 order by 1`,
    );
    return rows;
  };
  const entitiesTo = (count: number) => Array.from({ length: count }, (_none, index) => ({ entity: `m${index}` }));
  // At level 0 from the first entry on; finer cells begin at 64 entries.
  expect(await fold(entitiesTo(7))).toEqual([{ level: 0, types: null }]);
  expect(await fold([{ entity: 'm7', type: 'delete' }])).toEqual([{ level: 0, types: [-3, -2] }]);
  expect(await fold([{ entity: 'm0', type: 'create' }])).toEqual([{ level: 0, types: [-3, -2, -1] }]);
  // From here on all levels are built from entries that were folded before.
  const dense = await fold(entitiesTo(32).concat(entitiesTo(32)));
  expect(dense).toEqual([0, 1, 2, 3, 4].map((level) => ({ level, types: [-3, -2, -1] })));
  // Of a new minute with few kinds all coarser cells have them.
  const before = { at: now - minute, entity: 'm1' };
  await fold(Array.from({ length: 80 }, () => before));
  expect(await rowsByType()).toMatchObject({ ofActors: 5 * 3 });
});

test('a fold and a count of the backlog that began at once do not lose an entry', async () => {
  const { db } = database;
  const record = createRecorder(db, tenant, () => now);
  await record(Array.from({ length: 100 }, () => changeOf({ at: now })));
  await foldHistory(db, tenant);
  const first: [string, string][] = [
    ['select change_fold($1)', 'select change_fold_types($1)'],
    ['select change_fold_types($1)', 'select change_fold($1)'],
  ];
  for (const [earlier, later] of first) {
    await withoutTalliesByType(database.pool, tenant);
    await record(Array.from({ length: 100 }, () => changeOf({ at: now, type: 'delete' })));
    const isolation = { isolation: 'repeatable read' } as const;
    const late = inTransaction(
      db,
      async (waiting) => {
        // Its snapshot is from before the other one.
        await waiting.executeQuery(CompiledQuery.raw('select from tenant'));
        await inTransaction(db, (one) => one.executeQuery(CompiledQuery.raw(earlier, [tenant])), isolation);
        await waiting.executeQuery(CompiledQuery.raw(later, [tenant]));
      },
      isolation,
    );
    await expect(late).rejects.toMatchObject({ code: '40001' });
    await foldHistory(db, tenant);
    while (await isOpen()) await countBacklogPortion(db, tenant);
    expect(await faults()).toEqual([]);
  }
});

test('a tenant whose fold is at work waits, and one that fails keeps no other waiting', async () => {
  const { db, pool } = database;
  for (const name of [tenant, 'globex']) {
    await createRecorder(db, name, () => now)([changeOf({ at: now })]);
    await foldHistory(db, name);
    await withoutTalliesByType(pool, name);
  }
  await inTransaction(db, async (folding) => {
    await folding.executeQuery(CompiledQuery.raw('select change_fold($1)', [tenant]));
    expect(await countBacklogPortion(db, tenant)).toBe(false);
  });
  const refused = { table: 'change_type_backlog', on: 'update', tenant, message: 'refused' } as const;
  const accept = await refuseStatements(pool, refused);
  const errors: unknown[] = [];
  let rests = 0;
  const { signal } = new AbortController();
  await countBacklogs(db, {
    signal,
    findTenants: lookAtOnce(db),
    rest: async () => {
      rests += 1;
    },
    onError: (error) => void errors.push(error),
  });
  await accept();
  expect(errors).toMatchObject([{ message: 'refused' }]);
  // One of the tenant that fails, and one for each level of the other.
  expect(rests).toBe(1 + 5);
  expect((await pool.query('select tenant from change_type_backlog')).rows).toEqual([{ tenant }]);
});
