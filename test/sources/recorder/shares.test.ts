import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requestShares } from '../../../src/http/request-work.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestRecorder, type TestRecorder } from '../../support/server/recorder.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';

const scope = 'recorder.change_record';
let server: TestServer;
let recorder: TestRecorder;

beforeAll(async () => {
  server = await startTestServer();
  // Requests wait here longer than a busy machine needs to send them all.
  recorder = await startTestRecorder(server, { requestLimit: 150_000 });
  const token = await server.token('early', { scope });
  // A thread that reads bodies starts with the first request, which may take its time.
  for (let status = 0; status !== 200; )
    ({ status } = await recorder.post('early', JSON.stringify(change()), { token }));
});
afterAll(async () => {
  await recorder.close();
  await server.close();
});

function change(after: unknown = { a: 1 }): Record<string, unknown> {
  const id = randomBytes(8).toString('hex');
  return { op: 'insert', entity: 'parcel', entityId: id, id, at: new Date().toISOString(), after };
}

/** A tenant whose changes wait: recording its first parcel needs its row. */
async function heldTenant(tenant: string) {
  const token = await server.token(tenant, { scope, name: tenant });
  const client = await server.database.pool.connect();
  await client.query('begin');
  await client.query('select from tenant where tenant = $1 for update', [tenant]);
  const answers: Response[] = [];
  return {
    answers,
    send: async () => void answers.push(await recorder.post(tenant, JSON.stringify(change()), { token })),
    entries: async () => {
      const { rows } = await server.database.pool.query<{ count: number }>(
        'select count(*)::integer as count from change_entry where tenant = $1',
        [tenant],
      );
      return rows[0]?.count;
    },
    async letGo() {
      await client.query('rollback');
      client.release();
    },
  };
}

test('a tenant may have 64 requests under way and 256 that wait; each further one is 429, and nothing of it is taken', async () => {
  const { maxOfTenant, maxWaitingOfTenant } = requestShares.requests;
  const allowed = maxOfTenant + maxWaitingOfTenant;
  const crowd = await heldTenant('crowd');
  const further = 5;
  const sent = Array.from({ length: allowed + further }, () => crowd.send());
  await eventually(() => crowd.answers.length).toBe(further);
  for (const { status, headers } of crowd.answers) {
    expect(status).toBe(429);
    expect(headers.get('retry-after')).toMatch(/^[0-9]+$/);
  }
  await crowd.letGo();
  await Promise.all(sent);
  expect(crowd.answers.filter(({ status }) => status === 200)).toHaveLength(allowed);
  expect(await crowd.entries()).toBe(allowed);
});
