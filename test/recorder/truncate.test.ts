import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTenant } from '../../src/db/tenants.ts';
import { inTransaction } from '../../src/db/transaction.ts';
import { type InOwnTransaction, type Recordable, recordRead } from '../../src/recorder/record-changes.ts';
import { maxRetries } from '../../src/recording/record-change.ts';
import { createTakeChanges } from '../../src/recording/take-changes.ts';
import { createSealer } from '../../src/sealing.ts';
import { createTestDatabase, type TestDatabase } from '../support/server/database.ts';
import { changeOf } from '../support/server/history.ts';

const tenant = 'acme';
const documents = 1_200;
const at = Date.UTC(2026, 8, 15);
const take = createTakeChanges({ sealer: createSealer([Buffer.alloc(32)]), now: () => at });

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await createTenant(database.db, tenant);
});
afterAll(() => database.drop());

/** The same truncate each time. `transactions`: after so many the request's time is over. */
async function truncate(strict: boolean, transactions = Number.POSITIVE_INFINITY) {
  let begun = 0;
  const inOwnTransaction: InOwnTransaction = async (work) => {
    begun += 1;
    if (begun > transactions) throw new Error('the time of the request is over');
    return await inTransaction(database.db, work, { retries: maxRetries });
  };
  const changes: Recordable[] = [
    { index: 0, kind: 'truncate', entity: 'draft', at, identity: Buffer.from('the truncate 000') },
  ];
  const batch = { tenant, recordedBy: { way: 'recorder', by: 'Shop' } as const, changes, strict, actor: 'Shop' };
  return await recordRead(inOwnTransaction, take, batch);
}

async function deleted(): Promise<{ deletes: number; documents: number }> {
  const { rows } = await database.pool.query(
    `select count(*)::integer as deletes, count(distinct e.entity_id)::integer as documents
       from change_entry e join change_kind k using (tenant, kind) where tenant = $1 and k.type = 'delete'`,
    [tenant],
  );
  return rows[0];
}

test('a truncate that its request has no time for goes on when it is sent again; a strict one is whole or nothing', async () => {
  await inTransaction(database.db, async (transaction) => {
    const changes = Array.from({ length: documents }, (_none, index) => ({
      kind: 'change' as const,
      change: changeOf({ at: at - 1, entity: 'draft', entityId: `d${index}` }),
      source: { position: '', line: () => undefined },
    }));
    await take(transaction, { tenant, recordedBy: { way: 'recorder', by: 'Shop' }, changes, strict: true });
  });
  await expect(truncate(true, 0)).rejects.toThrow('time');
  expect(await deleted()).toEqual({ deletes: 0, documents: 0 });
  await expect(truncate(false, 2)).rejects.toThrow('time');
  expect(await deleted()).toEqual({ deletes: 1_000, documents: 1_000 });
  expect((await truncate(false)).counts).toMatchObject({ read: 200, recorded: 200 });
  expect(await deleted()).toEqual({ deletes: documents, documents });
  expect((await truncate(true)).counts).toMatchObject({ read: 1, ignored: 1 });
});
