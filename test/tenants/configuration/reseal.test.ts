import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const [old = Buffer.alloc(0), fresh = Buffer.alloc(0)] = [randomBytes(32), randomBytes(32)];
const body = JSON.stringify({ messages: [{ role: 'USER', content: 'Hello' }] });

const database = closeAfterAll(await createTestDatabase());
const vendor = closeAfterAll(await startVendor());

test('a key in front seals, reseal finishes the rotation, and the old key is then no longer needed', async () => {
  const before = await serverWith([old]);
  const client = await before.createClient('acme');
  const accessToken = await before.tokenOf(client);
  await before.call('/configuration/acme/configurations', {
    token: accessToken,
    json: [1, 2, 3].map((number) => ({ key: `k${number}`, value: `secret ${number}`, secured: true })),
  });
  const answer = await complete(before, accessToken);
  await before.close();

  const rotating = await serverWith([fresh, old]);
  expect(await rotating.context.configuration.read('acme', 'k1')).toMatchObject({ secret: 'secret 1' });
  const sent = { json: '"secret 1!"', size: { bytes: 11, values: 1, levels: 0 }, value: 'secret 1!' };
  await rotating.context.configuration.replace({ tenant: 'acme', actor: 'Jane Doe' }, 'k1', sent);
  await rotating.close();

  // k2, k3, the outcome of the completion and the signing key; k1 was resealed when it changed.
  expect(await reseal([fresh, old])).toEqual({ code: 0, counts: { resealed: 4, current: 1, unreadable: 0 } });
  expect(await reseal([fresh, old])).toEqual({ code: 0, counts: { resealed: 0, current: 5, unreadable: 0 } });

  const after = await serverWith([fresh]);
  const secrets = ['k1', 'k2', 'k3'].map((key) => after.context.configuration.read('acme', key));
  expect(await Promise.all(secrets)).toMatchObject(['secret 1!', 'secret 2', 'secret 3'].map((secret) => ({ secret })));
  expect(await complete(after, accessToken)).toBe(answer);
  expect(vendor.requests).toHaveLength(1);
  await after.close();
});

test('a value that none of the keys opens is left, counted, and exit code 1', async () => {
  const { code, counts } = await reseal([randomBytes(32)]);
  expect({ code, counts }).toEqual({ code: 1, counts: { resealed: 0, current: 0, unreadable: 5 } });
  expect(await reseal([fresh])).toEqual({ code: 0, counts: { resealed: 0, current: 5, unreadable: 0 } });
});

test('anything but reseal is wrong usage', async () => {
  expect((await annals(['secrets'])).code).toBe(2);
  expect((await annals(['secrets', 'show'])).code).toBe(2);
  expect((await annals(['secrets', 'reseal', 'all'])).code).toBe(2);
});

async function serverWith(secretKeys: readonly Uint8Array[]): Promise<TestServer> {
  const environment = { OPENAI_BASE_URL: vendor.baseUrl, ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared' };
  return await startTestServer({ database, secretKeys, environment });
}

async function complete(server: TestServer, token: string): Promise<string> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'once' };
  const response = await server.call('/ai-service/acme/completions', { method: 'POST', token, headers, body });
  expect(response.status).toBe(200);
  return await response.text();
}

async function reseal(keys: readonly Buffer[]) {
  const { code, stdout } = await annals(['secrets', 'reseal'], {
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: keys.map((key) => key.toString('base64')).join(','),
    LOG_LEVEL: 'silent',
  });
  return { code, counts: JSON.parse(stdout) };
}
