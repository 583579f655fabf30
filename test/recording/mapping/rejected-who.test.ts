import { expect, test } from 'vitest';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { createBatchRecorder } from '../../../src/recording/batches/record-batch.ts';
import { changesOfRow } from '../../../src/recording/mapping/changes-of-row.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { recordMapped } from '../../../src/recording/mapping/record-mapped.ts';
import { retryRejected } from '../../../src/recording/mapping/retry-rejected.ts';
import type { RowChange } from '../../../src/recording/mapping/row-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { startTestServer } from '../../support/server/server.ts';
import { row, type Values } from './mapped-rows.ts';

const server = closeAfterAll(await startTestServer());
const { db, sealer } = server.context;
const recordBatch = createBatchRecorder({ sealer, now: () => Date.now() });
const mapping = readMapping(
  JSON.stringify({ version: 1, tenant: { value: 'later' }, tables: { 'public.orders': { entity: 'order' } } }),
);

/** Records a row by capture, mapped as it is. */
async function capture(after: Values, facts: Partial<RowChange>): Promise<void> {
  const change: RowChange = {
    table: 'public.orders',
    type: 'create',
    at: Date.now(),
    identity: Buffer.alloc(16, String(after.id ?? 0)),
    primaryKey: ['id'],
    after: row(after),
    ...facts,
  };
  const changes = changesOfRow(mapping, change, { actor: 'unknown' }).map((mapped) => ({
    mapped,
    position: 'here',
    content: () => JSON.stringify({ after }),
  }));
  await inTransaction(db, async (transaction) => {
    await recordMapped(transaction, changes, {
      recordBatch,
      recordedBy: { way: 'capture', by: 'slot' },
      strict: false,
    });
  });
}

const retry = async (by = mapping) =>
  await retryRejected({ db, sealer, recordBatch, mapping: by, clientOf: async () => 'no client' }, {});

test('rejected changes of capture keep who made them and their correlations, given or derived', async () => {
  const who = { actor: 'Jane', actorId: 'u-17', onBehalfOf: { name: 'Acme' } };
  // Their tenant does not exist yet.
  await capture({ id: 1 }, { who, correlationId: 'given' });
  await capture({ id: 2 }, { who: { actorId: 'u-18' }, derivedCorrelationId: 'derived' });
  // Never recorded by this mapping.
  await capture({ id: null, key: 3 }, { who, correlationId: 'given' });
  await capture({ id: null, key: 4 }, { who, derivedCorrelationId: 'derived' });
  expect(await retry()).toMatchObject({ read: 4, rejected: 4 });

  const token = await server.token('later');
  const byKey = readMapping(
    JSON.stringify({
      version: 1,
      tenant: { value: 'later' },
      tables: { 'public.orders': { entity: 'order', id: ['key'] } },
    }),
  );
  expect(await retry(byKey)).toMatchObject({ read: 4, recorded: 4 });
  const answer = await server.call('/changelog/later/changelogs', { token });
  const { items } = (await answer.json()) as { items: Record<string, unknown>[] };
  const shown = items.map(({ entityId, actor, actorId, onBehalfOf, correlationId }) => [
    entityId,
    JSON.parse(JSON.stringify({ actor, actorId, onBehalfOf, correlationId })),
  ]);
  expect(Object.fromEntries(shown)).toEqual({
    1: { ...who, correlationId: 'given' },
    2: { actor: 'unknown', actorId: 'u-18', correlationId: 'derived' },
    3: { ...who, correlationId: 'given' },
    4: { ...who, correlationId: 'derived' },
  });

  // What was derived is no content after a retry either.
  const { at } = items.find(({ entityId }) => entityId === '2') ?? {};
  const again = { who: { actorId: 'u-18' }, at: Date.parse(String(at)) };
  await capture({ id: 2 }, { ...again, derivedCorrelationId: 'another' });
  expect(await retry(byKey)).toMatchObject({ read: 0 });
  await capture({ id: 2 }, { ...again, correlationId: 'another' });
  expect(await retry(byKey)).toMatchObject({ read: 1, rejected: 1 });
});
