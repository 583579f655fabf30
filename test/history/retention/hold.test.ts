import { expect, test } from 'vitest';
import { dropOldAccesses } from '../../../src/access/accesses/store.ts';
import { holdTenant, releaseTenant } from '../../../src/history/retention/hold.ts';
import {
  dropExpired,
  dropPortion,
  readHorizon,
  setRetention,
  writeExpiryReceipts,
} from '../../../src/history/retention/retention.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { deleteTenant } from '../../../src/postgres/tenants/delete-tenant.ts';
import { createTenant, findHold, tenantExists } from '../../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { readReceipts } from '../../../src/recording/receipt-store.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { statementsWaiting } from '../../support/server/statements-waiting.ts';

const day = 86_400_000;
const today = Date.UTC(2026, 8, 15);

let tenants = 0;

const database = closeAfterAll(await createTestDatabase());

/** A tenant with `each` entries on each of twenty days. */
async function newTenant(each = 2): Promise<string> {
  tenants += 1;
  const tenant = `kept${tenants}`;
  await createTenant(database.db, tenant);
  const ats = Array.from({ length: 20 * each }, (_none, i) => today - Math.floor(i / each) * day + i);
  await createRecorder(database.db, tenant, () => today)(ats.map((at) => changeOf({ at })));
  await foldHistory(database.db, tenant);
  return tenant;
}

async function countEntries(tenant: string): Promise<number> {
  const { rows } = await database.pool.query('select count(*)::bigint as entries from change_entry where tenant = $1', [
    tenant,
  ]);
  return rows[0].entries;
}

/** Makes rows of one position each, as after rounds of single changes. */
const splitPositions = `
  with gone as (delete from change_position where tenant = $1 returning *)
  insert into change_position (tenant, first, ats, sequences, recorded, fingerprints, oldest, newest)
    select tenant, first + i - 1, array[ats[i]], array[sequences[i]], array[recorded[i]], array[fingerprints[i]], ats[i], ats[i]
      from gone cross join lateral generate_subscripts(ats, 1) as i`;

async function drop(now: number): Promise<void> {
  const failures: unknown[] = [];
  await dropExpired(database.db, {
    now: () => now,
    maxRows: 7,
    signal: new AbortController().signal,
    rest: async () => {},
    onError: (error) => failures.push(error),
  });
  expect(failures).toEqual([]);
}

async function receiptsOf(tenant: string) {
  const receipts = await readReceipts(database.db, tenant, { limit: 100 });
  return receipts.map(({ body }) => JSON.parse(body) as { what: string; positions: number[][]; reason?: string });
}

test('a hold keeps what retention is about to drop, and freezes the horizon until its release', async () => {
  const tenant = await newTenant();
  await setRetention(database.db, tenant, 10, today);
  const hold = await holdTenant(database.db, tenant, 'audit', today);
  expect(await holdTenant(database.db, tenant, 'lawsuit', today + 5)).toEqual(hold);
  await drop(today + 5 * day);
  expect(await countEntries(tenant)).toBe(41);
  expect(await readHorizon(database.db, tenant, today + 5 * day)).toBe(today - 10 * day);
  await expect(setRetention(database.db, tenant, 2, today)).rejects.toThrow(`${tenant} is on hold`);
  await releaseTenant(database.db, tenant, today + 5 * day);
  expect(await readHorizon(database.db, tenant, today + 5 * day)).toBe(today - 5 * day);
  await drop(today + 5 * day);
  // Today and five days before it, with the two changes of this service.
  expect(await countEntries(tenant)).toBe(6 * 2 + 2);
  await expect(releaseTenant(database.db, tenant, today)).rejects.toThrow('is not on hold');
  expect(await receiptsOf(tenant)).toMatchObject([
    { what: 'hold', reason: 'audit' },
    { what: 'release', reason: 'audit' },
    { what: 'retention' },
  ]);
  const { rows } = await database.pool.query(
    `select k.type, e.entity_id from change_entry e join change_kind k using (tenant, kind)
       where tenant = $1 and k.entity = 'annals-hold' order by e.sequence`,
    [tenant],
  );
  expect(rows).toEqual([
    { type: 'create', entity_id: tenant },
    { type: 'delete', entity_id: tenant },
  ]);
});

test('retention writes receipts for dropped positions, each once, over several horizons and late entries', async () => {
  const { db } = database;
  const tenant = await newTenant(1);
  await setRetention(db, tenant, 15, today);
  await drop(today);
  await drop(today);
  const late = changeOf({ at: today - 10 * day });
  await createRecorder(db, tenant, () => today)([late]);
  await foldHistory(db, tenant);
  await setRetention(db, tenant, 10, today);
  await drop(today);
  await setRetention(db, tenant, 9, today);
  await drop(today);
  const ranges = (await receiptsOf(tenant)).map(({ positions }) => positions);
  // Days 16 to 19, then 11 to 15, then day 10 and the late one.
  expect(ranges).toEqual([[[17, 20]], [[12, 16]], [[11, 11], [22, 22]]]); // biome-ignore format: a row for each
  expect(await countEntries(tenant)).toBe(10);
});

test('retention receipts resume where a portion ended, even if more was recorded since', async () => {
  const { db, pool } = database;
  const tenant = await newTenant(1);
  await pool.query(splitPositions, [tenant]);
  const horizon = today - 2 * day;
  const more: boolean[] = [];
  for (let portion = 0; portion < 8; portion += 1) {
    more.push(await writeExpiryReceipts(db, tenant, horizon, today));
    if (portion !== 1) continue;
    await createRecorder(db, tenant, () => today)([changeOf({ at: today - 5 * day })]);
    await foldHistory(db, tenant);
  }
  expect(more.at(-1)).toBe(false);
  const positions = (await receiptsOf(tenant)).flatMap((receipt) => receipt.positions);
  const each = positions.flatMap(([from = 0, to = 0]) => Array.from({ length: to - from + 1 }, (_none, i) => from + i));
  // Of days 3 to 19; the late one follows the receipts of the first two portions.
  expect(each.filter((position) => position <= 20)).toEqual(Array.from({ length: 17 }, (_none, i) => i + 4));
  expect(each).toHaveLength(18);
});

test('retention receipts repeat nothing where rows of positions are merged', async () => {
  const { db, pool } = database;
  const tenant = await newTenant(1);
  await pool.query(splitPositions, [tenant]);
  const horizon = today - 2 * day;
  expect(await writeExpiryReceipts(db, tenant, horizon, today)).toBe(true);
  // With the receipt at 21, position 32 completes a block: the positions from 17 on are then in one row.
  const late = Array.from({ length: 11 }, (_none, i) => changeOf({ at: today - 5 * day + i }));
  await createRecorder(db, tenant, () => today)(late);
  await foldHistory(db, tenant);
  for (let portion = 0; portion < 6; portion += 1) await writeExpiryReceipts(db, tenant, horizon, today);
  const ranges = (await receiptsOf(tenant)).flatMap(({ positions }) => positions);
  expect(ranges).toEqual([[4, 8], [9, 13], [14, 20], [22, 32]]); // biome-ignore format: a row for each
});

test('retention drops nothing before receipts cover everything it will drop', async () => {
  const { db, pool } = database;
  const tenant = await newTenant(1);
  await pool.query(splitPositions, [tenant]);
  await setRetention(db, tenant, 2, today);
  const turns: { entries: number; told: number }[] = [];
  await dropExpired(db, {
    now: () => today,
    maxRows: 4,
    signal: new AbortController().signal,
    async rest() {
      const ranges = (await receiptsOf(tenant)).flatMap(({ positions }) => positions);
      turns.push({
        entries: await countEntries(tenant),
        told: ranges.reduce((sum, [from = 0, to = 0]) => sum + to - from + 1, 0),
      });
    },
    onError: (error) => expect(error).toBeUndefined(),
  });
  expect(turns.filter(({ entries }) => entries < 20).every(({ told }) => told === 17)).toBe(true);
  expect(turns.filter(({ entries, told }) => entries === 20 && told < 17).length).toBeGreaterThan(1);
  expect(turns.at(-1)).toEqual({ entries: 3, told: 17 });
});

test('a tenant on hold is not deleted, and a hold stops a deletion in progress', async () => {
  const { db } = database;
  const tenant = await newTenant();
  await holdTenant(db, tenant, 'other', today);
  await expect(deleteTenant(db, tenant)).rejects.toThrow(`${tenant} is on hold since`);
  expect(await countEntries(tenant)).toBe(41);
  await releaseTenant(db, tenant, today);
  const answered = Promise.withResolvers<number>();
  let isPutOnHold = false;
  const deletion = deleteTenant(db, tenant, {
    portion: 3,
    onProgress: () => {
      if (isPutOnHold) return;
      isPutOnHold = true;
      holdTenant(db, tenant, 'other', today)
        .then(() => countEntries(tenant))
        .then(answered.resolve, answered.reject);
    },
  });
  await expect(deletion).rejects.toThrow(`${tenant} is on hold since`);
  expect(await countEntries(tenant)).toBe(await answered.promise);
  expect(await tenantExists(db, tenant)).toBe(true);
});

test('a hold returns after the portion being dropped, and nothing is dropped after it returns', async () => {
  const { db } = database;
  for (let trial = 0; trial < 3; trial += 1) {
    const tenant = await newTenant(10);
    await setRetention(db, tenant, 3, today);
    const horizon = await readHorizon(db, tenant, today);
    let isOver = false;
    const dropping = Promise.all(
      [1, 2].map(async () => {
        while (!isOver) {
          await writeExpiryReceipts(db, tenant, horizon, today);
          await dropPortion(db, tenant, horizon, { maxRows: 3 });
        }
      }),
    );
    await holdTenant(db, tenant, 'lawsuit', today);
    const left = await countEntries(tenant);
    for (let round = 0; round < 10; round += 1) await dropPortion(db, tenant, horizon, { maxRows: 3 });
    isOver = true;
    await dropping;
    expect(await countEntries(tenant)).toBe(left);
  }
});

test('a hold waits for a dropping transaction, and later ones find the hold', async () => {
  const { db } = database;
  const tenant = await newTenant();
  const order: string[] = [];
  await inTransaction(db, async (transaction) => {
    expect(await findHold(transaction, tenant)).toBeUndefined();
    const holding = holdTenant(db, tenant, 'other', today).then(() => order.push('held'));
    // Cluster workers write it in capitals.
    const isWaiting = (text: string) => /for no key update/i.test(text);
    await expect.poll(async () => (await statementsWaiting(database)).some(isWaiting), { interval: 5 }).toBe(true);
    order.push('dropped');
    return { holding };
  }).then(({ holding }) => holding);
  expect(order).toEqual(['dropped', 'held']);
});

test('data with a limited lifetime is kept while the tenant is on hold', async () => {
  const { db, pool } = database;
  const tenant = await newTenant();
  await pool.query(
    `insert into access_event (tenant, id, at, kind, client, name, details)
       values ($1, '0', now() - interval '3 years', 'a', 'b', 'c', '{}')`,
    [tenant],
  );
  const countAccesses = async () => (await pool.query('select from access_event where tenant = $1', [tenant])).rowCount;
  await holdTenant(db, tenant, 'audit', today);
  await dropOldAccesses(db);
  expect(await countAccesses()).toBe(1);
  await releaseTenant(db, tenant, today);
  await dropOldAccesses(db);
  expect(await countAccesses()).toBe(0);
});

test('annals hold prints the state, blocks deletion and retention, and takes reasons from a list', async () => {
  const tenant = await newTenant();
  const environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') };
  const run = (...args: string[]) => annals(args, environment);
  expect(await run('hold', '--tenant', tenant, '--reason', 'my neighbour')).toMatchObject({ code: 2, stdout: '' });
  expect(await run('hold', '--tenant', tenant, '--reason', 'other', '--release')).toMatchObject({
    code: 2,
    stdout: '',
  });
  const { stdout } = await run('hold', '--tenant', tenant, '--reason', 'lawsuit');
  expect(JSON.parse(stdout)).toEqual({ tenant, heldSince: expect.any(String), reason: 'lawsuit' });
  expect((await run('hold', '--tenant', tenant)).stdout).toBe(stdout);
  for (const refused of [
    ['tenant', 'delete', tenant, '--yes'],
    ['retention', '--tenant', tenant, '--keep-days', '1'],
  ]) {
    const { code, stderr } = await run(...refused);
    expect({ refused, code, told: stderr.includes(`${tenant} is on hold`) }).toEqual({ refused, code: 1, told: true });
  }
  expect(JSON.parse((await run('hold', '--tenant', tenant, '--release')).stdout)).toEqual({
    tenant,
    heldSince: null,
    reason: null,
  });
});
