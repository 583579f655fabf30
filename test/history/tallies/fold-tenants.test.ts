import { beforeEach, expect, test } from 'vitest';
import { foldTenants, unfolded } from '../../../src/history/upkeep/fold.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { tenantsWith } from '../../../src/postgres/tenants/tenants-with.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15);

const database = closeAfterAll(await createTestDatabase());
for (const tenant of ['acme', 'globex', 'umbrella']) await createTenant(database.db, tenant);

beforeEach(async () => {
  await database.pool.query('truncate change_entry, change_related, change_delta, change_tally, change_folded');
});

/** Each in its own transaction, and so its own delta. */
async function record(tenant: string, transactions: number): Promise<void> {
  const recorder = createRecorder(database.db, tenant, () => now);
  for (let at = now - transactions; at < now; at += 1) await recorder([changeOf({ at })]);
}

/** Folds in rounds until nothing is left, two entries per tenant at a time. */
async function foldTwoByTwo({ signal = new AbortController().signal } = {}): Promise<{
  rests: number[];
  errors: unknown[];
}> {
  const rests: number[] = [];
  const errors: unknown[] = [];
  await foldTenants(database.db, {
    signal,
    portion: 2,
    findTenants: lookAtOnce(database.db),
    rest: async (taken) => void rests.push(taken),
    onError: (error) => errors.push(error),
  });
  return { rests, errors };
}

async function foldsOf(): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<{ tenant: string; folds: number }>(
    'select tenant, folds from change_folded',
  );
  return Object.fromEntries(rows.map(({ tenant, folds }) => [tenant, folds]));
}

test('folding continues while a tenant has more, one portion of each in turn, and rests once none is left', async () => {
  await record('acme', 5);
  await record('globex', 1);
  const { rests, errors } = await foldTwoByTwo();
  expect(errors).toEqual([]);
  expect(await tenantsWith(database.db, unfolded)).toEqual([]);
  expect(await foldsOf()).toEqual({ acme: 3, globex: 1 });
  expect(rests).toHaveLength(1);
  expect(rests[0]).toBeGreaterThan(0);
});

test('a tenant that cannot be folded is reported, and does not block the others', async () => {
  await database.pool.query(
    `insert into change_delta (tenant, ats, sequences, kinds, actors)
       values ('acme', '{1, 2}', '{1, 2}', '{null, null}', '{1, 1}')`,
  );
  await record('globex', 3);
  await record('umbrella', 1);
  const { errors } = await foldTwoByTwo();
  expect(errors).not.toEqual([]);
  for (const error of errors) expect(error).toMatchObject({ message: expect.stringContaining('column "kind"') });
  expect(await tenantsWith(database.db, unfolded)).toEqual(['acme']);
});

test('once stopped, it folds no further tenant', async () => {
  await record('acme', 1);
  expect(await foldTwoByTwo({ signal: AbortSignal.abort() })).toEqual({ rests: [], errors: [] });
  expect(await tenantsWith(database.db, unfolded)).toEqual(['acme']);
});

test('a listening server folds both earlier and later entries', async () => {
  await record('acme', 3);
  const server = await startTestServer({ database });
  const left = () => tenantsWith(database.db, unfolded);
  try {
    await eventually(left).toEqual([]);
    await record('globex', 1);
    await eventually(left).toEqual([]);
  } finally {
    await server.close();
  }
  await record('acme', 1);
  expect(await left()).toEqual(['acme']);
});
