import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { closeAfterAll } from '../../../support/close-after-all.ts';
import { startTestRecorder } from '../../../support/server/recorder.ts';
import { startTestServer } from '../../../support/server/server.ts';

const tenant = 'acme';
const mapping = JSON.stringify({
  version: 1,
  tables: {
    'public.customers': { entity: 'customer', id: ['id'], name: 'last_name', mask: ['email'] },
    'inventory.customers': { entity: 'client', id: ['id'] },
    's1.a': { entity: 'a', id: ['pk'] },
  },
});

const server = closeAfterAll(await startTestServer());
const recorder = closeAfterAll(await startTestRecorder(server, { mapping }));
const token = await server.token(tenant, { name: 'Debezium' });

async function post(name: string): Promise<unknown> {
  const body = readFileSync(join(import.meta.dirname, 'samples', `${name}.json`), 'utf8');
  const type = name === 'cloudevent' ? 'application/cloudevents+json' : 'application/json';
  const answer = await recorder.post(tenant, body, { token, type });
  expect(answer.status).toBe(200);
  return await answer.json();
}

test.each([
  ['postgresql-create', { recorded: 1 }],
  ['postgresql-update', { recorded: 1 }],
  ['postgresql-delete', { recorded: 1 }],
  ['postgresql-read', { recorded: 1 }],
  ['postgresql-truncate', { recorded: 1 }],
  ['postgresql-message', { ignored: 1 }],
  ['postgresql-transaction', { ignored: 1 }],
  ['heartbeat', { ignored: 1 }],
  ['mysql-create-with-schema', { recorded: 1 }],
  ['mysql-update', { recorded: 1 }],
  ['mysql-schema-change', { ignored: 1 }],
  ['cloudevent', { recorded: 1 }],
  ['flattened', { rejected: [{ index: 0, reason: expect.stringContaining('ExtractNewRecordState') }] }],
])('the sample %s, posted as it is: %j', async (name, counts) => {
  expect(await post(name)).toMatchObject({ read: 1, ...counts });
});

test('the entries of the samples tell what the samples tell, each once', async () => {
  await post('postgresql-create');
  const { rows } = await server.database.pool.query(
    `select k.entity, k.type, e.entity_id as id, e.paths from change_entry e join change_kind k using (tenant, kind)
      where e.tenant = $1 and k.entity in ('customer', 'client') order by e.at, e.sequence`,
    [tenant],
  );
  const told = rows.map(({ entity, type, id }) => `${entity} ${type} ${id}`);
  // One is the event, posted twice; the other is the row of the snapshot, which came after the delete.
  expect(told.filter((text) => text === 'customer create 1')).toHaveLength(2);
  expect(told).toContain('client update 1004');
  const update = rows.find(({ entity, type }) => entity === 'client' && type === 'update');
  expect(JSON.parse(update.paths)).toEqual({ first_name: { before: 'Anne', after: 'Anne Marie' } });
  const ofCustomers = rows.filter(({ entity }) => entity === 'customer');
  expect(JSON.stringify(ofCustomers)).not.toContain('annek@');
  expect(JSON.stringify(ofCustomers)).toContain('********');
});
