import { randomBytes } from 'node:crypto';
import { decodeProtectedHeader } from 'jose';
import { expect, test } from 'vitest';
import type { HttpServer } from '../../../src/http/http-server-type.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { recordStatements } from '../../support/server/statements.ts';

const day = 24 * 60 * 60 * 1000;

function extend(app: HttpServer): void {
  app.get('/rooms/:tenant', { config: { scopes: ['ai.agent_read'] } }, async () => 'fine');
}

async function statusOf(server: TestServer, token: string): Promise<number> {
  return (await server.call('/rooms/acme', { token })).status;
}

async function publishedKids(server: TestServer): Promise<unknown[]> {
  const { keys } = (await (await server.call('/.well-known/jwks.json')).json()) as { keys: { kid: string }[] };
  return keys.map(({ kid }) => kid);
}

function kidOf(token: string): string | undefined {
  return decodeProtectedHeader(token).kid;
}

test('processes that meet without a key make one together', async () => {
  const first = await startTestServer({ extend });
  const servers = [first, ...(await Promise.all([1, 2].map(() => startTestServer({ database: first.database }))))];
  const client = await first.createClient('acme');
  const tokens = await Promise.all(servers.map((server) => server.tokenOf(client)));
  expect(new Set(tokens.map(kidOf)).size).toBe(1);
  for (const token of tokens) expect(await statusOf(first, token)).toBe(200);
  for (const server of servers.slice(1)) await server.close();
  await first.close();
});

test('the next key, whichever process makes it, verifies at once in every process and signs in all, and old tokens stay valid', async () => {
  let now = Date.now();
  const clock = { now: () => now };
  const first = await startTestServer({ extend, clock });
  const others = { extend, clock, database: first.database };
  const second = await startTestServer(others);
  const client = await first.createClient('acme');
  // The first token makes the first key.
  await first.tokenOf(client);
  now += 30 * day - 1;
  const oldToken = await first.tokenOf(client);
  expect(await statusOf(second, oldToken)).toBe(200);

  now += 1;
  const third = await startTestServer(others);
  const newToken = await third.tokenOf(client);
  const kid = kidOf(newToken);
  expect(kid).not.toBe(kidOf(oldToken));
  // Neither process was notified of the new key.
  expect(await statusOf(first, newToken)).toBe(200);
  expect(await statusOf(second, newToken)).toBe(200);
  for (const server of [first, second, third]) expect(await statusOf(server, oldToken)).toBe(200);
  expect(await publishedKids(third)).toEqual([kid, kidOf(oldToken)]);
  for (const server of [first, second]) expect(kidOf(await server.tokenOf(client))).toBe(kid);
  await third.close();
  await second.close();
  await first.close();
});

test('keys rotate: after 30 days the next one signs, and the old one is deleted when its last token has expired', async () => {
  let now = Date.parse('2026-11-20T12:00:00Z');
  const server = await startTestServer({ extend, clock: { now: () => now } });
  const client = await server.createClient('acme');
  const early = await server.tokenOf(client);
  now += 30 * day - 1;
  const late = await server.tokenOf(client);
  expect(kidOf(late)).toBe(kidOf(early));
  now += 1;
  const next = await server.tokenOf(client);
  expect(kidOf(next)).not.toBe(kidOf(early));
  expect(await statusOf(server, late)).toBe(200);
  expect(await publishedKids(server)).toEqual([kidOf(next), kidOf(late)]);
  now += 14_397_000;
  expect(await statusOf(server, late)).toBe(200);
  now += 2_000 + 60 * 60 * 1000;
  expect(await publishedKids(server)).toEqual([kidOf(next)]);
  await server.close();
});

test('keys are sealed at rest, and rotating the secret keys invalidates no token', async () => {
  const [oldKey, newKey] = [randomBytes(32), randomBytes(32)];
  let now = Date.now();
  const clock = { now: () => now };
  const before = await startTestServer({ extend, clock, secretKeys: [oldKey] });
  const client = await before.createClient('acme');
  const token = await before.tokenOf(client);
  const { sealed_key: sealed } = await before.database.db
    .selectFrom('oauth_signing_key')
    .selectAll()
    .executeTakeFirstOrThrow();
  expect(Buffer.from(sealed).toString('latin1')).not.toMatch(/kty|crv|"d"/);

  const after = await startTestServer({ extend, clock, database: before.database, secretKeys: [newKey, oldKey] });
  expect(await statusOf(after, token)).toBe(200);
  expect(kidOf(await after.tokenOf(client))).toBe(kidOf(token));
  now += 30 * day - 1;
  const late = await after.tokenOf(client);
  now += 1;
  await after.tokenOf(client);
  const only = await startTestServer({ extend, clock, database: before.database, secretKeys: [newKey] });
  const newToken = await only.tokenOf(client);
  expect(kidOf(newToken)).not.toBe(kidOf(late));
  expect(await statusOf(after, newToken)).toBe(200);

  // A process that has lost the old secret key refuses the tokens, says so, and continues with keys that it can open.
  expect(await statusOf(only, late)).toBe(401);
  expect(only.logLines.join('')).toContain('no secret key opens this signing key');
  const lost = await startTestServer({ extend, clock, database: before.database, secretKeys: [randomBytes(32)] });
  expect(await statusOf(lost, await lost.tokenOf(client))).toBe(200);
  for (const server of [lost, only, after, before]) await server.close();
});

test('tokens with made-up key ids do not each cost a database query', async () => {
  const server = await startTestServer({ extend });
  const token = await server.token('acme');
  const [, body, signature] = token.split('.');
  const statements = recordStatements(server.context.vital.pool);
  const begun = performance.now();
  const statuses = await Promise.all(
    Array.from({ length: 60 }, (_, index) => {
      const header = Buffer.from(JSON.stringify({ alg: 'ES256', typ: 'at+jwt', kid: `made-up-${index}` }));
      return statusOf(server, `${header.toString('base64url')}.${body}.${signature}`);
    }),
  );
  expect(new Set(statuses)).toEqual(new Set([401]));
  const queries = statements.filter(({ text }) => text.includes('oauth_signing_key')).length;
  // One in 250 ms, with a millisecond less for the rounding of timers, and one at either end.
  expect(queries).toBeLessThanOrEqual((performance.now() - begun) / 249 + 2);
  await server.close();
});
