import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { createSealer } from '../../src/core/sealing.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../src/postgres/transaction.ts';
import {
  createBatchRecorder,
  type IncomingBatch,
  type IncomingChange,
  maxAhead,
  RejectedChangesError,
} from '../../src/recording/batches/record-batch.ts';
import { listRejected } from '../../src/recording/batches/rejected-changes.ts';
import type { Change } from '../../src/recording/change.ts';
import { changesOfRow } from '../../src/recording/mapping/changes-of-row.ts';
import type { Mapping } from '../../src/recording/mapping/mapping.ts';
import { readMapping } from '../../src/recording/mapping/read-mapping.ts';
import { retryRejected } from '../../src/recording/mapping/retry-rejected.ts';
import type { RowChange } from '../../src/recording/mapping/row-change.ts';
import { maxRetries } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { trials } from '../support/oracle/trials.ts';
import { createTestDatabase } from '../support/server/database.ts';
import { changeOf } from '../support/server/history.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const canary = 'canary-7319';
const sealer = createSealer([randomBytes(32)]);
const recordedBy = { way: 'capture', by: 'Shop' } as const;

// Capture's changes are no client's.
const clientOf = () => Promise.reject(new Error('no client sent it'));

let tenant: string;

const database = closeAfterAll(await createTestDatabase());

beforeEach(async () => {
  tenant = `t${randomBytes(6).toString('hex')}`;
  await createTenant(database.db, tenant);
});

let positions = 0;

function incomingChange(options: Partial<Change> = {}): IncomingChange {
  const change = changeOf({ at: now, paths: `{"a":{"after":"${canary}"}}`, ...options });
  const { at, entity, entityId } = change;
  const line = {
    op: 'insert',
    entity,
    entityId,
    at: new Date(at).toISOString(),
    id: `i${positions}`,
    after: { a: canary },
  };
  positions += 1;
  return { kind: 'change', change, source: { position: `p${positions}`, line: () => JSON.stringify(line) } };
}

function rejected(reason = 'is wrong', line: string | undefined = `{"a":"${canary}"}`): IncomingChange {
  positions += 1;
  return { kind: 'rejected', reason, source: { position: `p${positions}`, line: () => line } };
}

async function take(
  changes: IncomingChange[],
  options: Partial<IncomingBatch & { maxRejected: number; now: number }> = {},
) {
  const { maxRejected, now: moment = now, ...batch } = options;
  const rules = createBatchRecorder({
    sealer,
    now: () => moment,
    ...(maxRejected === undefined ? {} : { maxRejected }),
  });
  const all: IncomingBatch = { tenant, recordedBy, changes, strict: false, ...batch };
  return await inTransaction(database.db, (transaction) => rules(transaction, all), { retries: maxRetries });
}

const kept = async (of = tenant) => await listRejected(database.db, of, { after: undefined, count: 100 });

async function idsNewestFirst(): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    'select entity_id as id from change_entry where tenant = $1 order by at desc, sequence desc',
    [tenant],
  );
  return rows.map(({ id }) => id);
}

describe('a batch', () => {
  test('is counted by the outcome of each change, and a rejected change is listed with its index', async () => {
    const again = incomingChange({ entityId: 'again' });
    const taken = await take([
      incomingChange({ entityId: 'one' }),
      { kind: 'unchanged' },
      rejected(),
      { kind: 'ignored' },
      again,
      again,
      incomingChange({ at: 1, entityId: 'old' }),
    ]);
    expect(taken.counts).toEqual({
      read: 7,
      recorded: 3,
      unchanged: 1,
      duplicate: 1,
      expired: 0,
      ignored: 1,
      rejected: 1,
    });
    expect(taken.rejected).toEqual([{ index: 2, reason: 'is wrong' }]);
  });

  test('of one moment stands in the order of recording', async () => {
    await take(['a', 'b', 'c'].map((entityId) => incomingChange({ entityId })));
    await take([incomingChange({ entityId: 'd' })]);
    expect(await idsNewestFirst()).toEqual(['d', 'c', 'b', 'a']);
  });

  test('that holds the changes of another in another order never shows a deadlock', async () => {
    for (let round = 0; round < trials(3); round++) {
      const changes = Array.from({ length: 120 }, () => incomingChange());
      const all = await Promise.all([take(changes), take(changes.toReversed()), take(changes.toSorted())]);
      expect(all.reduce((sum, { counts }) => sum + counts.recorded, 0)).toBe(changes.length);
    }
  });
});

describe('Annals records no change from outside of', () => {
  test.each([
    'configuration',
    'agent',
    'custom-entity',
    'changelog-subscription',
    'annals-view',
    'annals-anything',
    'SHELF',
  ])('%s', async (entity) => {
    await database.pool.query(
      `insert into custom_entity (tenant, id, version, document, fields) values ($1, 'SHELF', 1, '{}', '{}')`,
      [tenant],
    );
    const { rejected: list, counts } = await take([
      incomingChange({ entity }),
      incomingChange({ entity: 'SHELVES' }),
      incomingChange({ entity: 'annals' }),
      incomingChange(),
    ]);
    expect(list).toEqual([{ index: 0, reason: '"entity" is one that this service records itself' }]);
    expect(counts).toMatchObject({ recorded: 3, rejected: 1 });
  });
});

test('a change is at most 5 minutes ahead of the clock', async () => {
  const taken = await take([incomingChange({ at: now + maxAhead }), incomingChange({ at: now + maxAhead + 1 })]);
  expect(taken.rejected).toEqual([{ index: 1, reason: '"at" is more than 5 minutes in the future' }]);
  expect(taken.counts.recorded).toBe(1);
});

describe('a change that can never be recorded', () => {
  test('is kept sealed, with its place and the reason', async () => {
    await take([rejected('has no id')]);
    const [row, ...others] = await kept();
    expect(others).toEqual([]);
    expect(row).toMatchObject({
      tenant,
      way: 'capture',
      recorder: 'Shop',
      reason: 'has no id',
      keptAt: expect.any(Date),
    });
    expect(Buffer.from(row?.sealed ?? []).toString('latin1')).not.toContain(canary);
    const { rows } = await database.pool.query(`select r::text as text from change_rejected r where tenant = $1`, [
      tenant,
    ]);
    expect(JSON.stringify(rows)).not.toContain(canary);
  });

  test('is kept once, however often it comes', async () => {
    const wrong = rejected();
    await take([wrong]);
    await take([wrong, rejected('is wrong', '{"b":1}')]);
    expect(await kept()).toHaveLength(2);
  });

  test('is kept without content where its masks cannot be applied', async () => {
    await take([{ kind: 'rejected', reason: 'cannot be read', source: { position: 'p', line: () => undefined } }]);
    expect(await kept()).toMatchObject([{ reason: 'cannot be read', sealed: null }]);
  });

  test('of an unknown tenant is kept without a tenant, and recorded by a retry once the tenant is there', async () => {
    const unknown = `u${randomBytes(6).toString('hex')}`;
    const taken = await take([incomingChange({ entityId: 'later' })], { tenant: unknown });
    expect(taken.rejected).toEqual([{ index: 0, reason: 'its tenant does not exist' }]);
    const of = async () => (await kept('')).length;
    expect(await of()).toBe(1);
    const retry = async () =>
      await retryRejected(
        { db: database.db, sealer, recordBatch: createBatchRecorder({ sealer, now: () => now }), clientOf },
        { tenant: '' },
      );
    expect(await retry()).toMatchObject({ read: 1, recorded: 0, rejected: 1 });
    await createTenant(database.db, unknown);
    expect(await retry()).toMatchObject({ read: 1, recorded: 1, rejected: 0 });
    expect(await of()).toBe(0);
    const { rows } = await database.pool.query('select entity_id from change_entry where tenant = $1', [unknown]);
    expect(rows).toEqual([{ entity_id: 'later' }]);
  });

  test('stays after a retry that fails, with the reason as it is now, and has the identity that it came with', async () => {
    const ahead = incomingChange({ at: now + maxAhead + 1, entityId: 'ahead' });
    if (ahead.kind !== 'change') throw new Error('no change');
    const identity = randomBytes(16);
    const source = { ...ahead.source, identity };
    const line = { op: 'insert', entity: 'agent', entityId: 'x', at: new Date(now).toISOString() };
    await take([
      { ...ahead, source },
      { kind: 'rejected', reason: 'as it was', source: { position: 'p', line: () => JSON.stringify(line) } },
    ]);
    const take2 = createBatchRecorder({ sealer, now: () => now + 1 });
    const counts = await retryRejected({ db: database.db, sealer, recordBatch: take2, clientOf }, { tenant });
    expect(counts).toMatchObject({ read: 2, recorded: 1, rejected: 1 });
    expect(await kept()).toMatchObject([{ reason: '"entity" is one that this service records itself' }]);
    const { rows } = await database.pool.query(
      `select identity::text from change_entry where tenant = $1 and entity_id = 'ahead'`,
      [tenant],
    );
    expect(rows[0]?.identity.replaceAll('-', '')).toBe(identity.toString('hex'));
  });

  test('that is a row of a table is mapped once more by a retry with the mapping', async () => {
    const file = (id: string) => ({
      version: 1,
      tenant: { value: tenant },
      tables: { 'public.orders': { entity: 'row', id: [id] } },
    });
    const row: RowChange = {
      table: 'public.orders',
      type: 'create',
      at: now,
      identity: randomBytes(16),
      after: new Map([
        ['id', 'null'],
        ['number', '"r-7"'],
      ]),
    };
    const [mapped] = changesOfRow(readMapping(JSON.stringify(file('id'))), row, { actor: 'unknown' });
    if (mapped?.kind !== 'rejected') throw new Error(mapped?.kind);
    await take([{ kind: 'rejected', reason: mapped.reason, source: { position: 'p', line: () => mapped.content } }]);
    const retry = async (mapping?: Mapping) => {
      await retryRejected(
        { db: database.db, sealer, recordBatch: createBatchRecorder({ sealer, now: () => now }), mapping, clientOf },
        { tenant },
      );
      return (await kept()).map(({ reason }) => reason);
    };
    expect(await retry()).toEqual(['is a row of a table: name the mapping with --mapping FILE']);
    expect(await retry(readMapping(JSON.stringify(file('id'))))).toEqual(['the column id of its id is null']);
    expect(await retry(readMapping(JSON.stringify(file('number'))))).toEqual([]);
    const { rows } = await database.pool.query(
      `select identity::text from change_entry where tenant = $1 and entity_id = 'r-7'`,
      [tenant],
    );
    expect(rows[0]?.identity.replaceAll('-', '')).toBe(Buffer.from(row.identity).toString('hex'));
  });

  test.each([
    ['relay', 'the row cannot be written as JSON (SQLSTATE 54000)', { place: 'outbox 7' }],
    [
      'recorder',
      'is an event of Debezium, and this recorder has no mapping',
      { op: 'c', source: {}, after: { id: 1 } },
    ],
  ] as const)(
    'of the %s that is neither a line nor a row keeps its reason when it is retried',
    async (way, reason, content) => {
      await take([rejected(reason, JSON.stringify(content))], { recordedBy: { way, by: 'Shop' } });
      const retrying = { db: database.db, sealer, recordBatch: createBatchRecorder({ sealer, now: () => now }) };
      const client = async () => ({ name: 'Shop', tenant, maySetActor: true });
      expect(await retryRejected({ ...retrying, clientOf: client }, { tenant })).toMatchObject({
        read: 1,
        rejected: 1,
      });
      expect((await kept()).map((one) => one.reason)).toEqual([reason]);
    },
  );

  test.each([
    ['capture', 'table', { tables: { 'public.orders': { entity: 'order', mask: ['a'] } } }],
    ['recorder', 'entity', { entities: { order: { mask: ['a'] } } }],
  ] as const)(
    'of the %s that was kept before its %s had a mask is recorded with the mask by a retry',
    async (way, _of, rules) => {
      await take([incomingChange({ at: now + maxAhead + 1, entity: 'order' })], { recordedBy: { way, by: 'Shop' } });
      const mapping = readMapping(JSON.stringify({ version: 1, tenant: { value: tenant }, ...rules }));
      const retrying = {
        db: database.db,
        sealer,
        recordBatch: createBatchRecorder({ sealer, now: () => now + 1 }),
        mapping,
      };
      const client = async () => ({ name: 'Shop', tenant, maySetActor: true });
      expect(await retryRejected({ ...retrying, clientOf: client }, { tenant })).toMatchObject({
        read: 1,
        recorded: 1,
      });
      const { rows } = await database.pool.query('select paths from change_entry where tenant = $1', [tenant]);
      expect(rows).toEqual([{ paths: '{"a":{"after":"********"}}' }]);
    },
  );

  test('refuses the whole batch where it is strict', async () => {
    const work = take([incomingChange(), rejected('first'), incomingChange({ entity: 'agent' })], { strict: true });
    await expect(work).rejects.toMatchObject({
      isFull: false,
      rejected: [
        { index: 1, reason: 'first' },
        { index: 2, reason: '"entity" is one that this service records itself' },
      ],
    });
    expect(await idsNewestFirst()).toEqual([]);
    expect(await kept()).toEqual([]);
  });

  test('refuses the batch where the tenant would keep more than the limit', async () => {
    const wrong = [1, 2, 3].map((number) => rejected('is wrong', `{"a":${number}}`));
    await take([...wrong, incomingChange({ entityId: 'fits' })], { maxRejected: 3 });
    const work = take([rejected('is wrong', '{"a":4}'), incomingChange()], { maxRejected: 3 });
    await expect(work).rejects.toThrow(RejectedChangesError);
    await expect(work).rejects.toMatchObject({ isFull: true });
    expect(await idsNewestFirst()).toEqual(['fits']);
    // What is kept already needs no more room.
    expect((await take(wrong, { maxRejected: 3 })).counts.rejected).toBe(3);
    expect(await kept()).toHaveLength(3);
  });

  test('keeps 100,000 of a tenant by default, and refuses the next', async () => {
    await database.pool.query(
      `insert into change_rejected (tenant, id, way, position, reason)
         select $1, lpad(number::text, 32, '0')::uuid, 'capture', number, 'is wrong' from generate_series(1, 99999) as number`,
      [tenant],
    );
    expect((await take([rejected('is the last', '{"a":1}')])).counts.rejected).toBe(1);
    await expect(take([rejected('is too many', '{"a":2}')])).rejects.toMatchObject({ isFull: true });
  });
});
