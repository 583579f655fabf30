import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../src/postgres/transaction.ts';
import type { Change } from '../../src/recording/change.ts';
import { recordChanges } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { createTestDatabase } from '../support/server/database.ts';

const now = Date.UTC(2026, 10, 20);
const database = closeAfterAll(await createTestDatabase());
for (const tenant of ['single', 'batch']) await createTenant(database.db, tenant);

function changeNumber(nth: number, related: Change['related'] = []): Change {
  return {
    identity: Buffer.alloc(16, nth + 1),
    at: now - nth,
    type: nth % 2 === 0 ? 'create' : 'update',
    entity: `entity ${nth % 3}`,
    entityId: String(nth),
    ...(nth % 2 === 0 ? { name: `name ${nth}` } : { schemaVersion: '7' }),
    actor: `actor ${nth % 2}`,
    related,
    paths: `{"n":{"after":${nth}}}`,
  };
}

const record = (tenant: string, changes: readonly Change[]) =>
  inTransaction(database.db, (transaction) => recordChanges(transaction, tenant, changes, now, { way: 'import' }));

async function entriesOf(tenant: string): Promise<unknown[]> {
  const { rows } = await database.pool.query(
    `select e.at, e.identity, e.document, e.entity_id, e.name, e.schema_version, e.related, e.paths, k.entity, k.type,
            k.related_entities, a.name as actor,
            (select count(*) from change_delta d where d.tenant = e.tenant and e.at = any (d.ats)) as deltas,
            (select count(*) from change_related r where r.tenant = e.tenant and r.at = e.at) as items
       from change_entry e
       join change_kind k on k.tenant = e.tenant and k.kind = e.kind
       join change_actor a on a.tenant = e.tenant and a.actor = e.actor
       where e.tenant = $1 order by e.at`,
    [tenant],
  );
  return rows;
}

test('changes that are recorded one by one leave the same as a batch of them', async () => {
  const changes = Array.from({ length: 12 }, (_, nth) =>
    changeNumber(nth, nth % 4 === 3 ? [{ entity: 'group', entityId: 'g' }] : []),
  );
  for (const change of changes) expect(await record('single', [change])).toEqual(['recorded']);
  expect(await record('batch', changes)).toEqual(changes.map(() => 'recorded'));
  expect(await entriesOf('single')).toEqual(await entriesOf('batch'));
  expect(await entriesOf('single')).toHaveLength(12);
});

test('one that is there already is a duplicate, or a conflict where it says something else', async () => {
  expect(await record('single', [changeNumber(0)])).toEqual(['duplicate']);
  expect(await record('single', [{ ...changeNumber(0), paths: '{}' }])).toEqual(['conflict']);
  expect(await entriesOf('single')).toHaveLength(12);
});

test('one that is older than its tenant keeps entries is expired', async () => {
  await database.pool.query(`insert into change_retention (tenant, keep_days, horizon) values ('single', 1, 0)`);
  const old = { ...changeNumber(20), identity: randomBytes(16), at: now - 3 * 86_400_000 };
  expect(await record('single', [old])).toEqual(['expired']);
  expect(await entriesOf('single')).toHaveLength(12);
});
