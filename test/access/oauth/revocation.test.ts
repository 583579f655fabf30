import { expect, test } from 'vitest';
import { revokeClient } from '../../../src/access/oauth/clients.ts';
import type { HttpServer } from '../../../src/http/http-server-type.ts';
import { takeDatabaseAway } from '../../support/server/database-away.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';

const invalid = {
  fault: { faultstring: 'Invalid access token', detail: { errorcode: 'oauth.v2.InvalidAccessToken' } },
};
const scopes = ['changelog.changelog_read'] as const;

function extend(app: HttpServer): void {
  app.get('/rooms/:tenant', { config: { scopes } }, async () => '');
}

let elapsed = 0;
const clock = { elapsed: () => elapsed };

/** Calls every 250 ms until a call gets that status. Returns when the last call was let in, in ms of the clock. */
async function lastLetIn(status: number, server: TestServer, token: string): Promise<number> {
  let last = Number.NEGATIVE_INFINITY;
  for (;;) {
    const response = await server.call('/rooms/acme', { token });
    await response.text();
    if (response.status === status) return last;
    expect(response.status).toBe(200);
    last = elapsed;
    elapsed += 250;
  }
}

test("a revoked client's tokens stop within 5 seconds in every process, busy or quiet; others continue", async () => {
  const busy = await startTestServer({ extend, clock });
  const quiet = await startTestServer({ extend, clock, database: busy.database });
  const client = await busy.createClient('acme');
  const tokens = [await busy.tokenOf(client), await quiet.tokenOf(client)];
  const otherToken = await busy.token('acme');
  for (const server of [busy, quiet]) {
    for (const token of tokens) expect((await server.call('/rooms/acme', { token })).status).toBe(200);
  }

  expect(await revokeClient(busy.database.db, client.clientId)).toBe(true);
  const revoked = elapsed;
  const [first = '', second = ''] = tokens;
  const last = await lastLetIn(401, busy, first);
  expect(last - revoked).toBeLessThan(5_000);
  elapsed = revoked + 5_000;
  const quietAnswer = await quiet.call('/rooms/acme', { token: second });
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

test('an outage of the database is bridged for at most 5 seconds; then calls are refused until it is back', async () => {
  const server = await startTestServer({ extend, clock });
  const token = await server.token('acme');
  expect((await server.call('/rooms/acme', { token })).status).toBe(200);
  const bringBack = await takeDatabaseAway(server.database.url);

  const away = elapsed;
  const last = await lastLetIn(503, server, token);
  expect(last).toBeGreaterThanOrEqual(away);
  expect(last - away).toBeLessThanOrEqual(5_000);
  const response = await server.call('/rooms/acme', { token });
  expect(await response.json()).toEqual({
    status: 503,
    type: 'service_unavailable',
    message: 'The database cannot be reached.',
  });
  // What needs no lookup is still refused as such.
  expect((await server.call('/rooms/acme', { token: 'nonsense' })).status).toBe(401);
  expect((await server.call('/rooms/acme')).status).toBe(401);

  await bringBack();
  expect((await server.call('/rooms/acme', { token })).status).toBe(200);
  await server.close();
});
