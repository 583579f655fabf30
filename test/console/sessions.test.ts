import { expect, test } from 'vitest';
import { revokeClient } from '../../src/access/oauth/clients.ts';
import { maxSessionsOfClient } from '../../src/access/sessions/sessions.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { Browser } from '../support/server/browser.ts';
import { isListed, isSignedIn, linkFor, rowsOf, sessionPath, signIn } from '../support/server/console-sessions.ts';
import { takeDatabaseAway } from '../support/server/database-away.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer } from '../support/server/server.ts';

const tenant = 'acme';

let elapsed = 0;
const clock = { elapsed: () => elapsed };
const server = closeAfterAll(await startTestServer({ clock }));
/** Another process on the same database. */
const second = closeAfterAll(await startTestServer({ clock, database: server.database }));
const client = await server.createClient(tenant, { name: 'Jane Doe' });

test('only hashes are stored, and nothing of a secret is logged', async () => {
  const browser = await signIn(server, client);
  const link = await linkFor(server, tenant);
  const { rows } = await server.database.pool.query(
    `select encode(secret_hash, 'hex') as hash, length(secret_hash) as bytes from console_session
     union all select encode(secret_hash, 'hex'), length(secret_hash) from console_link`,
  );
  expect(rows.length).toBeGreaterThan(1);
  for (const { bytes } of rows) expect(bytes).toBe(32);
  const secret = link.fragment.slice(`link=${tenant}.`.length);
  expect(rows.map(({ hash }) => hash)).not.toContain(Buffer.from(secret, 'base64url').toString('hex'));
  await new Browser(server).redeem(link.fragment);
  const log = server.logLines.join('');
  expect(log).toContain(`"clientId":"${link.clientId}","msg":"signed in to the console"`);
  for (const text of [secret, client.clientSecret, browser.cookie?.split('=')[1] ?? '']) {
    expect(text.length).toBeGreaterThan(40);
    expect(log).not.toContain(text);
  }
});

test("a revoked client's session ends within 5 seconds in every process, and its link does not sign in", async () => {
  const own = await server.createClient(tenant);
  const browser = await signIn(server, own);
  for (const at of [server, second]) expect(await isSignedIn(browser, at)).toBe(true);
  await revokeClient(server.database.db, own.clientId);
  elapsed += 5_000;
  for (const at of [server, second]) expect(await isSignedIn(browser, at)).toBe(false);
  expect((await new Browser(server).signIn(own)).status).toBe(401);

  const link = await linkFor(server, tenant);
  await revokeClient(server.database.db, link.clientId);
  expect((await new Browser(server).redeem(link.fragment)).status).toBe(401);
  elapsed += 60_000;
});

test('a session that has expired says so, and upkeep deletes it with the client of its link', async () => {
  const browser = await signIn(server, client);
  const guest = new Browser(server);
  const link = await linkFor(server, tenant);
  await guest.redeem(link.fragment);
  const unused = await linkFor(server, tenant, 1);
  const expire = (clientId: string) =>
    server.database.pool.query(
      `update console_session set expires_at = now() where client_id = $1
         and created_at = (select max(created_at) from console_session where client_id = $1)`,
      [clientId],
    );
  await expire(client.clientId);
  await expire(link.clientId);
  for (const at of [server, second]) {
    const copy = new Browser(at);
    copy.cookie = browser.cookie;
    const expired = await copy.call(sessionPath);
    expect([expired.status, await expired.json()]).toMatchObject([
      401,
      {
        fault: {
          faultstring: 'Access Token expired',
          detail: { errorcode: 'keymanagement.service.access_token_expired' },
        },
      },
    ]);
  }
  expect(await isListed(server, tenant, unused.clientId)).toBe(true);
  const others = (await rowsOf(server, 'console_session', client.clientId)) - 1;
  await server.context.webConsole.sessions.upkeep();
  expect(await rowsOf(server, 'console_session', client.clientId)).toBe(others);
  expect(await rowsOf(server, 'console_link', unused.clientId)).toBe(0);
  expect(await isSignedIn(browser, server)).toBe(false);
  const left = await Promise.all(
    [client, link, unused].map(({ clientId }) => rowsOf(server, 'oauth_client', clientId)),
  );
  expect(left).toEqual([1, 0, 0]);
});

test(`a client has ${maxSessionsOfClient} sessions; one more ends the oldest`, async () => {
  const own = await server.createClient(tenant);
  const oldest = await signIn(server, own);
  const fill = maxSessionsOfClient - 2;
  await server.database.pool.query(
    `insert into console_session (tenant, secret_hash, client_id, scopes, by_link, expires_at)
       select $1, sha256(n::text::bytea), $2, '{}', false, now() + interval '1 hour' from generate_series(1, $3::integer) n`,
    [tenant, own.clientId, fill],
  );
  const newest = await signIn(server, own);
  expect(await rowsOf(server, 'console_session', own.clientId)).toBe(maxSessionsOfClient);
  expect(await isSignedIn(oldest, server)).toBe(true);
  await signIn(server, own);
  expect(await rowsOf(server, 'console_session', own.clientId)).toBe(maxSessionsOfClient);
  expect([await isSignedIn(oldest, server), await isSignedIn(newest, server)]).toEqual([false, true]);
});

test('concurrent sign-ins wait for each other, and no other request waits for them', async () => {
  const browser = await signIn(server, client);
  const token = await server.token('bystander');
  const blocker = await server.database.pool.connect();
  await blocker.query('begin');
  await blocker.query('lock table console_session in share mode');
  const signingIn = Array.from({ length: 12 }, () => new Browser(server).signIn(client));
  await eventually(async () => {
    const { rows } = await server.database.pool.query(
      "select from pg_locks where not granted and locktype = 'relation'",
    );
    return rows.length;
  }).toBeGreaterThan(1);
  expect(await isSignedIn(browser, server)).toBe(true);
  expect((await server.call('/changelog/bystander/changelogs', { token })).status).toBe(200);
  expect(await server.token('bystander')).not.toBe(token);
  await blocker.query('rollback');
  blocker.release();
  const statuses = (await Promise.all(signingIn)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200]));
});

test('invented cookies cost no query, and the requests of one tenant share theirs', async () => {
  const browser = await signIn(server, client);
  let queries = 0;
  const { pool } = server.context.vital;
  const count = () => {
    queries += 1;
  };
  pool.on('acquire', count);
  const name = browser.cookie?.split('=')[0];
  for (const value of ['', 'x', 'A'.repeat(230), `${tenant}.${'a'.repeat(43)}`]) {
    const impostor = new Browser(server);
    impostor.cookie = `${name}=${value}`;
    expect((await impostor.call(sessionPath)).status).toBe(401);
  }
  expect(queries).toBe(0);
  const answers = await Promise.all(Array.from({ length: 40 }, () => browser.call(sessionPath)));
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  expect(queries).toBeGreaterThan(0);
  expect(queries).toBeLessThan(40);
  pool.off('acquire', count);
});

test('while the database is away all sessions are kept: the answer is 503, and 500 from the change history', async () => {
  const browser = await signIn(server, client);
  const bringBack = await takeDatabaseAway(server.database.url);
  expect((await browser.call(sessionPath)).status).toBe(503);
  expect((await browser.call(`/console/api/configuration/${tenant}/configurations`)).status).toBe(503);
  expect((await browser.call(`/console/api/changelog/${tenant}/changelogs`)).status).toBe(500);
  expect((await new Browser(server).signIn(client)).status).toBe(503);
  expect((await browser.signOut()).status).toBe(503);
  expect(browser.cookie).toBeDefined();
  await bringBack();
  expect((await browser.call(sessionPath)).status).toBe(200);
});
