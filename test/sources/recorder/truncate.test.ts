import { expect, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { createBatchRecorder, maxAhead } from '../../../src/recording/batches/record-batch.ts';
import { listRejected, openRejected } from '../../../src/recording/batches/rejected-changes.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { retryRejected } from '../../../src/recording/mapping/retry-rejected.ts';
import { maxRetries } from '../../../src/recording/record-change.ts';
import { type InOwnTransaction, type Recordable, recordRead } from '../../../src/sources/recorder/record-changes.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';

const tenant = 'acme';
const documents = 1_200;
const at = Date.UTC(2026, 8, 15);
const sealer = createSealer([Buffer.alloc(32)]);
const take = createBatchRecorder({ sealer, now: () => at });

/** The mask is newer than the documents. */
const mapping = readMapping('{"version": 1, "entities": {"draft": {"mask": ["card"]}}}');

const database = closeAfterAll(await createTestDatabase());
await createTenant(database.db, tenant);
/** The same truncate each time. `transactions`: after so many the request's time is over. */
async function truncate(strict: boolean, transactions = Number.POSITIVE_INFINITY, taking = take) {
  let begun = 0;
  const inOwnTransaction: InOwnTransaction = async (work) => {
    begun += 1;
    if (begun > transactions) throw new Error('the time of the request is over');
    return await inTransaction(database.db, work, { retries: maxRetries });
  };
  const changes: Recordable[] = [
    { index: 0, kind: 'truncate', entity: 'draft', at, identity: Buffer.from('the truncate 000') },
  ];
  const batch = {
    tenant,
    recordedBy: { way: 'recorder', by: 'Shop' } as const,
    changes,
    strict,
    actor: 'Shop',
    mapping,
  };
  return await recordRead(inOwnTransaction, taking, batch);
}

async function deleted(): Promise<{ deletes: number; documents: number }> {
  const { rows } = await database.pool.query(
    `select count(*)::integer as deletes, count(distinct e.entity_id)::integer as documents
       from change_entry e join change_kind k using (tenant, kind) where tenant = $1 and k.type = 'delete'`,
    [tenant],
  );
  return rows[0];
}

test('a truncate that its request has no time for continues when it is sent again; a strict one is whole or nothing', async () => {
  await inTransaction(database.db, async (transaction) => {
    const changes = Array.from({ length: documents }, (_none, index) => ({
      kind: 'change' as const,
      change: changeOf({ at: at - 1, entity: 'draft', entityId: `d${index}`, paths: '{"card":{"after":"4111"}}' }),
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

test('deletes of a truncate that cannot be recorded are kept one by one, masked, and can be retried', async () => {
  await database.pool.query('delete from change_entry where at >= $1', [at]);
  const tooEarly = createBatchRecorder({ sealer, now: () => at - maxAhead - 1 });
  expect((await truncate(false, undefined, tooEarly)).counts).toMatchObject({ recorded: 0, rejected: documents });
  const kept = await listRejected(database.db, tenant, { after: undefined, count: documents + 1 });
  expect(kept).toHaveLength(documents);
  const [first] = kept;
  const { line } = openRejected(sealer, tenant, first?.id ?? '', first?.sealed ?? Buffer.alloc(0));
  expect(JSON.parse(line)).toMatchObject({ op: 'delete', entity: 'draft', before: { card: '********' } });
  await database.pool.query('delete from change_rejected where id <> $1', [first?.id]);
  const clientOf = async () => ({ name: 'Shop', tenant, maySetActor: false });
  expect(await retryRejected({ db: database.db, sealer, recordBatch: take, clientOf }, { tenant })).toMatchObject({
    read: 1,
    recorded: 1,
  });
  // The truncate that comes again knows the delete, and deletes the other documents.
  expect((await truncate(false)).counts).toMatchObject({ recorded: documents - 1, duplicate: 0 });
  const { rows } = await database.pool.query('select distinct paths from change_entry where at = $1', [at]);
  expect(rows).toEqual([{ paths: '{"card":{"before":"********"}}' }]);
});
