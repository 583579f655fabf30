import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTenant } from '../../src/db/tenants.ts';
import { createClient } from '../../src/oauth/clients.ts';
import { createTestDatabase, type TestDatabase } from '../support/server/database.ts';
import { type ServiceProcesses, startServices } from '../support/server/service-processes.ts';

const tenant = 'acme';
const clients = 64;
const requestsOfClient = 3;
const changesOfRequest = 10;
const kills = 3;

let database: TestDatabase;
let recorders: ServiceProcesses;
let authorization: string;

beforeAll(async () => {
  database = await createTestDatabase();
  await createTenant(database.db, tenant);
  const scope = 'recorder.change_record';
  const { clientId, clientSecret } = await createClient(database.db, { tenant, scope, name: 'Shop' });
  authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
  const environment = {
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    ANNALS_RECORDER_PORT: '0',
    LOG_LEVEL: 'warn',
  };
  recorders = await startServices(2, environment, 'recorder');
}, 60_000);

afterAll(async () => {
  await recorders.end();
  await database.drop();
});

/** Sends a request until it is acknowledged. Returns how often it was sent. */
async function sendUntilAcknowledged(ids: readonly string[]): Promise<number> {
  const at = new Date().toISOString();
  const changes = ids.map((id) =>
    JSON.stringify({ id, op: 'insert', entity: 'order', entityId: id, at, after: { id } }),
  );
  const body = gzipSync(changes.join('\n'));
  for (let sent = 1; ; sent++) {
    const answer = await recorders
      .next()
      .then((baseUrl) =>
        fetch(`${baseUrl}/recorder/${tenant}/changes`, {
          method: 'POST',
          headers: { authorization, 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' },
          body,
        }),
      )
      .catch(() => undefined);
    if (answer?.status === 200) {
      const { recorded, duplicate } = (await answer.json()) as { recorded: number; duplicate: number };
      expect(recorded + duplicate).toBe(ids.length);
      return sent;
    }
    if (answer !== undefined && answer.status < 429) throw new Error(`${answer.status} ${await answer.text()}`);
    await answer?.body?.cancel();
    await sleep(100 + Math.random() * 200);
  }
}

test('64 clients send while recorders are killed: what was acknowledged is an entry exactly once', async () => {
  let acknowledged = 0;
  let sent = 0;
  const all: string[] = [];
  const clientAt = async (client: number) => {
    for (let request = 0; request < requestsOfClient; request++) {
      const ids = Array.from({ length: changesOfRequest }, (_none, index) => `${client}-${request}-${index}`);
      all.push(...ids);
      const times = await sendUntilAcknowledged(ids);
      sent += times;
      acknowledged += 1;
    }
  };
  const total = clients * requestsOfClient;
  const killing = (async () => {
    for (let kill = 0; kill < kills; kill++) {
      // Each in another part of the run.
      const share = (kill + Math.random()) / (kills + 1);
      while (acknowledged < total * share) await sleep(5);
      await recorders.replace(kill % 2);
    }
  })();
  await Promise.all([killing, ...Array.from({ length: clients }, (_none, client) => clientAt(client))]);
  expect(sent).toBeGreaterThan(total);
  const { rows } = await database.pool.query<{ id: string }>(
    'select entity_id as id from change_entry where tenant = $1',
    [tenant],
  );
  expect(rows.map(({ id }) => id).sort()).toEqual(all.sort());
}, 240_000);
