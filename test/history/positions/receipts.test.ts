import { expect, test } from 'vitest';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { deleteTenant } from '../../../src/postgres/tenants/delete-tenant.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { firstKept, givePositions } from '../../../src/recording/positions.ts';
import {
  type PositionRange,
  type Receipt,
  rangesOf,
  readReceipts,
  writeReceipt,
} from '../../../src/recording/receipt-store.ts';
import { createRecorder, recordChanges } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { changeOf } from '../../support/server/history.ts';
import { expectDense } from '../../support/server/positions.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15);

let tenants = 0;

const server = closeAfterAll(await startTestServer());

async function newTenant(): Promise<string> {
  tenants += 1;
  const tenant = `held${tenants}`;
  await createTenant(server.context.db, tenant);
  return tenant;
}

async function record(tenant: string, count: number, at = now): Promise<void> {
  const changes = Array.from({ length: count }, (_none, i) => changeOf({ at: at + i }));
  await createRecorder(server.context.db, tenant, () => now)(changes);
}

const receiptOf = (positions: PositionRange[] = []): Receipt => ({
  what: 'retention',
  positions,
  at: new Date(now).toISOString(),
  by: 'annals',
});

async function write(tenant: string, receipt = receiptOf()): Promise<number[]> {
  return await inTransaction(server.context.db, (transaction) => writeReceipt(transaction, tenant, receipt));
}

test('a receipt has a position like an entry, as the first one and in a completed block too', async () => {
  const { db } = server.context;
  const tenant = await newTenant();
  expect(await write(tenant)).toEqual([1]);
  await record(tenant, 14);
  await givePositions(db, tenant);
  expect(await write(tenant)).toEqual([16]);
  await record(tenant, 3, now + 100);
  await givePositions(db, tenant);
  await foldHistory(db, tenant);
  const places = await expectDense(server.database, tenant);
  expect(places.filter(({ at }) => at === -1).map(({ position }) => position)).toEqual([1, 16]);
  expect(await firstKept(db, tenant, 0)).toBe(2);
});

test('a transaction open when a receipt is written gets its position afterwards', async () => {
  const { db } = server.context;
  const tenant = await newTenant();
  await record(tenant, 1);
  await givePositions(db, tenant);
  await db.transaction().execute(async (transaction) => {
    await recordChanges(transaction, tenant, [changeOf({ at: now + 5 })], now, { way: 'import' });
    expect(await write(tenant)).toEqual([2]);
  });
  await record(tenant, 1, now + 9);
  expect(await givePositions(db, tenant)).toBe(2);
  expect((await expectDense(server.database, tenant)).map(({ at }) => at)).toEqual([now, -1, now + 5, now + 9]);
});

test('receipts written concurrently with a recorder have their own positions, and no entry loses its', async () => {
  const { db } = server.context;
  const tenant = await newTenant();
  const written = await Promise.all(
    Array.from({ length: 24 }, async (_none, number) => {
      await record(tenant, 2, now + 10 * number);
      if (number % 3 === 0) await givePositions(db, tenant);
      return await write(tenant);
    }),
  );
  await givePositions(db, tenant);
  const places = await expectDense(server.database, tenant);
  expect(places).toHaveLength(24 * 3);
  const receipts = places.filter(({ at }) => at === -1).map(({ position }) => position);
  expect(written.flat().sort((a, b) => a - b)).toEqual(receipts);
  expect((await readReceipts(db, tenant, { limit: 50 })).map(({ position }) => position)).toEqual(receipts);
});

test('a long list of ranges is split into receipts of at most 60,000 bytes', async () => {
  const tenant = await newTenant();
  const far = 8_000_000_000_000_000;
  const ranges = rangesOf(Array.from({ length: 1_501 }, (_none, i) => far + 2 * i));
  expect(ranges).toHaveLength(1_501);
  expect(JSON.stringify(rangesOf([1, 2, 3, 5, 7, 8]))).toBe('[[1,3],[5,5],[7,8]]');
  expect(await write(tenant, receiptOf(ranges.slice(0, 1_500)))).toEqual([1]);
  expect(await write(tenant, receiptOf(ranges))).toEqual([2, 3]);
  const bodies = await readReceipts(server.context.db, tenant, { after: 1, limit: 10 });
  for (const { body } of bodies) expect(Buffer.byteLength(body)).toBeLessThan(60_000);
  expect(bodies.flatMap(({ body }) => (JSON.parse(body) as Receipt).positions)).toEqual(ranges);
});

test('the feed skips receipts and counts none', async () => {
  const tenant = await newTenant();
  const token = await server.token(tenant);
  await write(tenant);
  await record(tenant, 2);
  await givePositions(server.context.db, tenant);
  await write(tenant);
  const ask = async (after: string) => {
    const response = await server.call(`/changelog/${tenant}/feed?after=${after}`, { token });
    return (await response.json()) as { cursor: string };
  };
  const begun = await ask('start');
  expect(begun).toMatchObject({ items: [{ position: 2 }, { position: 3 }], caughtUp: true, expired: 0 });
  expect(begun.cursor).toBe((await ask('now')).cursor);
  await write(tenant);
  const next = await ask(begun.cursor);
  expect(next).toMatchObject({ items: [], caughtUp: true, expired: 0 });
  expect(next.cursor).not.toBe(begun.cursor);
});

test('annals receipt list prints them, and a deleted tenant has none', async () => {
  const tenant = await newTenant();
  await write(tenant, receiptOf([[3, 7]]));
  const environment = { DATABASE_URL: server.database.url, ANNALS_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') };
  const { stdout, code } = await annals(['receipt', 'list', '--tenant', tenant], environment);
  expect({ code, printed: JSON.parse(stdout) }).toEqual({ code: 0, printed: { position: 1, ...receiptOf([[3, 7]]) } });
  await deleteTenant(server.context.db, tenant);
  expect(await readReceipts(server.context.db, tenant, { limit: 1 })).toEqual([]);
});
