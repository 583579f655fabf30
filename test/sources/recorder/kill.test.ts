import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { createClient } from '../../../src/access/oauth/clients.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { trials } from '../../support/oracle/trials.ts';
import { homeOf } from '../../support/server/data-folder.ts';
import { startServices } from '../../support/server/service-processes.ts';
import { startSourceServer } from '../../support/server/source-server.ts';

const tenant = 'acme';
const clients = trials(8);
const requestsOfClient = 3;
const changesOfRequest = 10;
const victims = ['recorder', 'database'] as const;

// Of its own, because it is killed.
const server = await startSourceServer();
const pool = createPool(server.url);
pool.on('error', () => {});
await migrate(pool);
const db = createDatabase(pool);
await createTenant(db, tenant);
const scope = 'recorder.change_record';
const { clientId, clientSecret } = await createClient(db, { tenant, scope, name: 'Shop' });
const authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
const environment = {
  DATABASE_URL: server.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  ANNALS_RECORDER_PORT: '0',
  LOG_LEVEL: 'warn',
};
const recorders = await startServices(2, environment, 'recorder');

afterAll(async () => {
  await recorders.end();
  await pool.end();
  await server.close();
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

async function killDatabase(): Promise<void> {
  const pidFile = await readFile(join(await homeOf(server.dataDir), 'cluster', 'postmaster.pid'), 'utf8');
  process.kill(Number(pidFile.split('\n')[0]), 'SIGKILL');
}

test(
  `${clients} clients send while recorders and the database are killed: what was acknowledged is an entry exactly once`,
  async () => {
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
      for (const [kill, victim] of victims.entries()) {
        // Each in another part of the run.
        const share = (kill + Math.random()) / (victims.length + 1);
        while (acknowledged < total * share) await sleep(5);
        if (victim === 'database') await killDatabase();
        else await recorders.replaceForGood(kill % 2);
      }
    })();
    await Promise.all([killing, ...Array.from({ length: clients }, (_none, client) => clientAt(client))]);
    expect(sent).toBeGreaterThan(total);
    const { rows } = await pool.query<{ id: string }>('select entity_id as id from change_entry where tenant = $1', [
      tenant,
    ]);
    expect(rows.map(({ id }) => id).sort()).toEqual(all.sort());
  },
  trials(240_000),
);
