import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { setRetention } from '../../src/history/retention/retention.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../src/postgres/transaction.ts';
import type { Change } from '../../src/recording/change.ts';
import { createRecorder, recordChanges } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import {
  createSingleTestDatabase,
  createTestDatabase,
  createTestDatabaseForThisTest,
} from '../support/server/database.ts';
import { statementsWaiting } from '../support/server/statements-waiting.ts';

/** From so many changes on, the database takes another way (sql/recording/record_entries_numbered.sql). */
const minMany = 64;
/** Up to so many entries as old as those of a batch, it compares their identities alone. */
const maxAsOld = 16;

const now = Date.UTC(2026, 10, 20);
const day = 86_400_000;
const database = closeAfterAll(await createTestDatabase());

function changeNumber(nth: number): Change {
  const item = { entity: 'group', entityId: `g ${nth % 3}` };
  return {
    identity: Buffer.alloc(16, nth + 1),
    at: now - nth,
    type: nth % 2 === 0 ? 'create' : 'update',
    entity: `entity ${nth % 3}`,
    entityId: String(nth),
    ...(nth % 2 === 0 ? { name: `name ${nth}` } : { schemaVersion: '7', marks: '{"whole":true}' }),
    ...(nth % 5 === 0 ? { context: '{"reason":"é"}' } : {}),
    actor: `actor ${nth % 4}`,
    // The second one says the same as the first.
    related: nth % 4 === 3 ? [item, item, { entity: 'site', entityId: '"1\\' }] : [],
    paths: `{"n":{"after":${nth}}}`,
  };
}

const changes = (count: number) => Array.from({ length: count }, (_, nth) => changeNumber(nth));

async function recorderOf(tenant: string) {
  await createTenant(database.db, tenant);
  return createRecorder(database.db, tenant, () => now);
}

/** All that a tenant's entries, items and deltas say, without the numbers of rows. */
async function contentOf(tenant: string): Promise<unknown> {
  const { rows } = await database.pool.query(
    `select e.at, e.identity, e.document, e.entity_id, e.name, e.schema_version, e.related, e.paths, e.marks, e.context,
            e.recorded_by, k.entity, k.type, k.related_entities, a.name as actor,
            array(select row(r.entity, r.entity_id, r.document)::text from change_related r
                    where r.tenant = e.tenant and r.at = e.at and r.sequence = e.sequence order by r.entity) as items,
            array(select row(d.recorder, d.recorded, d.day, dk.entity, dk.type, da.name)::text
                    from change_delta d
                    cross join unnest(d.ats, d.kinds, d.actors) as folded (at, kind, actor)
                    join change_kind dk on dk.tenant = d.tenant and dk.kind = folded.kind
                    join change_actor da on da.tenant = d.tenant and da.actor = folded.actor
                    where d.tenant = e.tenant and folded.at = e.at) as folds
       from change_entry e
       join change_kind k on k.tenant = e.tenant and k.kind = e.kind
       join change_actor a on a.tenant = e.tenant and a.actor = e.actor
       where e.tenant = $1 order by e.at`,
    [tenant],
  );
  const { rows: sums } = await database.pool.query('select sum(bytes) as bytes from change_delta where tenant = $1', [
    tenant,
  ]);
  return { entries: rows, ...sums[0] };
}

test.each([minMany - 1, minMany])('%i changes at once leave the same as one by one', async (count) => {
  const recordSingly = await recorderOf(`one${count}`);
  for (const change of changes(count)) await recordSingly([change]);
  const many = await recorderOf(`many${count}`);
  expect(await many(changes(count))).toEqual(Array(count).fill('recorded'));
  expect(await contentOf(`many${count}`)).toEqual(await contentOf(`one${count}`));
  expect(await many(changes(count))).toEqual(Array(count).fill('duplicate'));
});

test.each([maxAsOld, maxAsOld + 1])('of many, %i that are known already are duplicates', async (known) => {
  const record = await recorderOf(`known${known}`);
  await record(changes(minMany).slice(-known));
  expect(await record(changes(minMany))).toEqual([
    ...Array(minMany - known).fill('recorded'),
    ...Array(known).fill('duplicate'),
  ]);
});

test.each([maxAsOld, maxAsOld + 1])('of many, all are new beside %i others of the same time', async (others) => {
  const record = await recorderOf(`others${others}`);
  await record(changes(others).map((change) => ({ ...change, identity: Buffer.alloc(16, 0xff) })));
  expect(await record(changes(minMany))).toEqual(Array(minMany).fill('recorded'));
});

test('of many at one time, as a snapshot has them, each is looked up alone, however many of that time there are', async () => {
  // A database that has planned nothing yet: PostgreSQL has counted none of its rows.
  const fresh = await createTestDatabaseForThisTest(createSingleTestDatabase);
  await createTenant(fresh.db, 'snapshot');
  const [batches, of] = [4, 200];
  const read = await inTransaction(fresh.db, async (transaction) => {
    for (let batch = 0; batch < batches; batch++) {
      const batchChanges = changes(of).map((change) => ({
        ...change,
        at: now,
        identity: randomBytes(16),
        related: [],
      }));
      await recordChanges(transaction, 'snapshot', batchChanges, now, { way: 'import' });
    }
    const { rows } = await sql<{ entries: number }>`
      select idx_tup_fetch::float8 as entries from pg_stat_xact_user_tables where relname = 'change_entry'`.execute(
      transaction,
    );
    return rows[0]?.entries;
  });
  // One for each look, and those that tell that there are more than a few of this time.
  expect(read).toBeLessThan(batches * (of + 2 * maxAsOld));
});

test('of many, a repeated one is recorded once', async () => {
  const record = await recorderOf('twice');
  expect(await record([...changes(minMany), changeNumber(0)])).toEqual([
    ...Array(minMany).fill('recorded'),
    'duplicate',
  ]);
});

test('of many, one that is older than the horizon is expired', async () => {
  const record = await recorderOf('expired');
  await setRetention(database.db, 'expired', 1, now);
  const old = { ...changeNumber(minMany), at: now - 3 * day };
  expect(await record([...changes(minMany), old])).toEqual([...Array(minMany).fill('recorded'), 'expired']);
});

test('of many, one that a concurrent transaction is recording is a duplicate once that has committed', async () => {
  const record = await recorderOf('race');
  const waiting = await inTransaction(database.db, async (transaction) => {
    await recordChanges(transaction, 'race', [changeNumber(7)], now, { way: 'import' });
    const outcomes = record(changes(minMany));
    await expect.poll(() => statementsWaiting(database), { timeout: 60_000 }).toHaveLength(1);
    return { outcomes };
  });
  const outcomes = await waiting.outcomes;
  expect(outcomes.filter((outcome) => outcome === 'recorded')).toHaveLength(minMany - 1);
  expect(outcomes[7]).toBe('duplicate');
});
