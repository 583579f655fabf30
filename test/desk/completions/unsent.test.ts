import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { createClient } from '../../../src/access/oauth/clients.ts';
import { Quota } from '../../../src/desk/completions/quota.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { Random } from '../../support/oracle/random.ts';
import { startAnnals } from '../../support/server/command.ts';
import { modelOperations } from '../../support/server/completions.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const random = new Random();
const tenant = 'acme';
const nothing = { input: 0, output: 0 };

const sockets: Socket[] = [];

const database = await createTestDatabase();
await createTenant(database.db, tenant);
const vendor = await startVendor();
vendor.behave({ kind: 'hang' });
/** Takes connections and says nothing, so that no handshake of TLS ends. */
const mute = createServer((socket) => sockets.push(socket.on('error', () => {})));
mute.listen(0, '127.0.0.1');
await once(mute, 'listening');

afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  mute.close();
  await vendor.close();
  await database.drop();
});

test.each([
  ['never reached its provider is given back soon', 'mute', nothing],
  ['was with its provider is charged when its long lease ends', 'vendor', { output: 4_096 }],
  ['reserved when it left, after one that got all, is charged as well', 'vendor again', { output: 4_096 }],
] as const)('after kill -9, the reservation of a call that %s', { timeout: 120_000 }, async (_, at, used) => {
  const leaves = at !== 'mute';
  await database.pool.query('delete from completion_quota');
  const service = startAnnals(['serve'], {
    PORT: '0',
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
    ANNALS_BASE_URL: 'http://annals.example',
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
    OPENAI_BASE_URL: at === 'mute' ? `https://127.0.0.1:${(mute.address() as AddressInfo).port}` : vendor.baseUrl,
  });
  try {
    const baseUrl = await service.firstLine;
    if (at === 'vendor again') {
      vendor.behave({ kind: 'answer', usage: { input: 0, output: 0 } });
      await complete(baseUrl);
      vendor.behave({ kind: 'hang' });
      // Only what reserves when it leaves can leave now.
      await database.pool.query('alter function completion_quota_send rename to completion_quota_send_away');
    }
    vendor.requests.length = 0;
    const call = complete(baseUrl).catch(() => 'lost');
    await eventually(async () => (await reservations()).map(({ sent }) => sent)).toEqual([leaves]);
    if (leaves) await eventually(() => vendor.requests.length).toBe(1);
    service.process.kill('SIGKILL');
    expect(await call).toBe('lost');
    // 10 minutes and 30 seconds for a call that may be under way, 30 seconds for one that is not.
    expect(await reservations()).toEqual([{ sent: leaves, isShort: !leaves }]);
  } finally {
    service.process.kill('SIGKILL');
    await service.ended;
  }
  const quota = new Quota({ pool: database.pool, db: database.db, logger: createLogger('silent') });
  expect((await quota.state(tenant)).reserved.output).toBe(4_096);
  await database.pool.query('update completion_reservation set expires_at = now()');
  expect(await quota.state(tenant)).toMatchObject({ used, reserved: nothing });
  await quota.close();
  await database.pool.query('delete from completion_reservation');
});

test('a call whose reservation cannot be made durable does not leave, and costs nothing', async () => {
  const server = await startTestServer({
    environment: { OPENAI_BASE_URL: vendor.baseUrl, ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared' },
  });
  try {
    await createTenant(server.database.db, 'other');
    const { pool } = server.database;
    const seen = vendor.requests.length;
    await pool.query('alter function completion_quota_send rename to completion_quota_send_away');
    const token = await server.token('other');
    const [path, json] = random.pick(modelOperations)('other', 'x', 'gpt-5.4-mini');
    expect((await server.call(path, { token, json })).status).toBe(500);
    expect(vendor.requests).toHaveLength(seen);
    await eventually(() => server.context.completions.quota.state('other')).toEqual({
      used: nothing,
      reserved: nothing,
    });
  } finally {
    await server.close();
  }
});

async function reservations(): Promise<{ sent: boolean; isShort: boolean }[]> {
  const { rows } = await database.pool.query<{ sent: boolean; isShort: boolean }>(
    `select sent, expires_at <= now() + interval '30 s' as "isShort" from completion_reservation`,
  );
  return rows;
}

async function complete(baseUrl: string): Promise<string> {
  const client = await createClient(database.db, { tenant, scope: 'ai.completion_manage' });
  const answer = await fetch(`${baseUrl}/oauth/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'grant_type=client_credentials',
  });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const [path, body] = random.pick(modelOperations)(tenant, 'x', 'gpt-5.4-mini');
  const response = await fetch(`${baseUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return await response.text();
}
