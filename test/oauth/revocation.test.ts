import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { HttpServer } from '../../src/http/http-server-type.ts';
import { revokeClient } from '../../src/oauth/clients.ts';
import { takeDatabaseAway } from '../support/server/database-away.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

const invalid = {
  fault: { faultstring: 'Invalid access token', detail: { errorcode: 'oauth.v2.InvalidAccessToken' } },
};
const scopes = ['changelog.changelog_read'] as const;

function extend(app: HttpServer): void {
  app.get('/rooms/:tenant', { config: { scopes, internalErrorMessage: 'The history is not there.' } }, async () => '');
}

/**
 * When the last call was begun that was still let in, before one got that status (seconds of the process). How long its
 * answer took does not count: that is up to the machine.
 */
async function lastLetIn(status: number, server: TestServer, token: string): Promise<number> {
  let last = Number.NEGATIVE_INFINITY;
  for (;;) {
    const begun = performance.now() / 1000;
    const response = await server.call('/rooms/acme', { token });
    await response.text();
    if (response.status === status) return last;
    expect(response.status).toBe(200);
    last = begun;
    await sleep(50);
  }
}

test("a revoked client's tokens stop within 5 seconds in every process, busy or quiet; others go on", async () => {
  const busy = await startTestServer({ extend });
  const quiet = await startTestServer({ extend, database: busy.database });
  const client = await busy.createClient('acme');
  const tokens = [await busy.tokenOf(client), await quiet.tokenOf(client)];
  const otherToken = await busy.token('acme');
  for (const server of [busy, quiet]) {
    for (const token of tokens) expect((await server.call('/rooms/acme', { token })).status).toBe(200);
  }

  expect(await revokeClient(busy.database.db, client.clientId)).toBe(true);
  const revoked = performance.now() / 1000;
  const [first = '', second = ''] = tokens;
  const [last, quietAnswer] = await Promise.all([
    lastLetIn(401, busy, first),
    sleep(5_000).then(() => quiet.call('/rooms/acme', { token: second })),
  ]);
  expect(last - revoked).toBeLessThan(5);
  expect(quietAnswer.status).toBe(401);
  expect(await quietAnswer.json()).toEqual(invalid);
  // Nor does it get a new one.
  await expect(busy.tokenOf(client)).rejects.toThrow('invalid_client');
  for (const server of [busy, quiet]) {
    expect((await server.call('/rooms/acme', { token: otherToken })).status).toBe(200);
  }
  await quiet.close();
  await busy.close();
});

test('a database that is away is bridged for at most 5 seconds; then nobody is let in until it is back', async () => {
  const server = await startTestServer({ extend });
  const token = await server.token('acme');
  expect((await server.call('/rooms/acme', { token })).status).toBe(200);
  const bringBack = await takeDatabaseAway(server.database.url);

  const away = performance.now() / 1000;
  const last = await lastLetIn(500, server, token);
  expect(last).toBeGreaterThanOrEqual(away);
  expect(last - away).toBeLessThan(5);
  const response = await server.call('/rooms/acme', { token });
  expect(await response.json()).toEqual({
    status: 500,
    type: 'internal_service_error',
    message: 'The history is not there.',
  });
  // What can be told without the database is.
  expect((await server.call('/rooms/acme', { token: 'nonsense' })).status).toBe(401);
  expect((await server.call('/rooms/acme')).status).toBe(401);

  await bringBack();
  expect((await server.call('/rooms/acme', { token })).status).toBe(200);
  await server.close();
});
