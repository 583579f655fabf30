import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeConsoleLink } from '../../src/cli/console-link.ts';
import { linkLifetime } from '../../src/console/links.ts';
import { maxSignInBytes } from '../../src/console/session-routes.ts';
import { maxSessionsOfClient, sessionLifetime } from '../../src/console/sessions.ts';
import { readingScopes, scopes } from '../../src/http/scopes.ts';
import { listClients, type NewClient, revokeClient } from '../../src/oauth/clients.ts';
import { Browser, type ConsoleSession } from '../support/server/browser.ts';
import { takeDatabaseAway } from '../support/server/database-away.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

const tenant = 'acme';
const session = '/console/api/session';
const invalid = {
  fault: { faultstring: 'Invalid access token', detail: { errorcode: 'oauth.v2.InvalidAccessToken' } },
};
const scope = readingScopes.join(' ');

let elapsed = 0;
const clock = { elapsed: () => elapsed };
let server: TestServer;
/** Another process on the same database. */
let second: TestServer;
let client: NewClient;

beforeAll(async () => {
  server = await startTestServer({ clock });
  second = await startTestServer({ clock, database: server.database });
  client = await server.createClient(tenant, { name: 'Jane Doe' });
});

afterAll(async () => {
  await second.close();
  await server.close();
});

async function signedIn(of: NewClient = client): Promise<Browser> {
  const browser = new Browser(server);
  expect((await browser.signIn(of)).status).toBe(200);
  return browser;
}

async function linkFor(lifetime = linkLifetime) {
  return await makeConsoleLink(server.database.db, { tenant, scope, name: 'Guest' }, lifetime);
}

/** Whether the browser is signed in, by the process. */
async function isIn(browser: Browser, at = server): Promise<boolean> {
  const copy = new Browser(at);
  copy.cookie = browser.cookie;
  const response = await copy.call(session);
  if (response.status === 401) expect(await response.json()).toEqual(invalid);
  else expect(response.status).toBe(200);
  return response.status === 200;
}

async function rowsOf(table: 'console_session' | 'console_link' | 'oauth_client', clientId: string): Promise<number> {
  const { rows } = await server.database.pool.query(`select from ${table} where client_id = $1`, [clientId]);
  return rows.length;
}

/** Whether `annals client list` shows a client, and as one that is not revoked. */
async function isListed(clientId: string): Promise<boolean> {
  const clients = await listClients(server.database.db, tenant);
  return clients.some((one) => one.clientId === clientId && one.revokedAt === null);
}

test('a client signs in with its id and secret, is seen by every process, and signs out', async () => {
  const browser = new Browser(server);
  const begun = await browser.signIn(client);
  expect(begun.status).toBe(200);
  const told = (await begun.json()) as ConsoleSession;
  expect(told).toEqual({
    tenant,
    client: client.clientId,
    name: 'Jane Doe',
    scopes,
    expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  });
  const left = Date.parse(told.expiresAt) - Date.now();
  expect(left).toBeLessThanOrEqual(sessionLifetime);
  expect(left).toBeGreaterThan(sessionLifetime - 60_000);
  expect(sessionLifetime).toBe(8 * 3_600_000);
  expect(browser.setCookie).toMatch(
    /^annals-[0-9a-f-]{36}=[\w-]{100,400}; Max-Age=28800; Path=\/console\/api; HttpOnly; SameSite=Strict$/,
  );

  for (const at of [server, second]) {
    const other = new Browser(at);
    other.cookie = browser.cookie;
    const answer = await other.call(session);
    expect(await answer.json()).toEqual(told);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect((await other.call(`/console/api/changelog/${tenant}/changelogs`)).status).toBe(200);
  }

  const cookie = browser.cookie;
  const ended = await browser.signOut();
  expect([ended.status, browser.setCookie]).toEqual([204, expect.stringContaining('=; Max-Age=0; ')]);
  browser.cookie = cookie;
  for (const at of [server, second]) expect(await isIn(browser, at)).toBe(false);
  expect(await isListed(client.clientId)).toBe(true);
});

test('signing out without a session is no error', async () => {
  expect((await new Browser(server).signOut()).status).toBe(204);
});

test('only hashes are stored, and nothing of a secret is logged', async () => {
  const browser = await signedIn();
  const link = await linkFor();
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

test.each([
  [{}, 400],
  [{ clientId: 'x' }, 400],
  [{ clientSecret: 'x' }, 400],
  [{ clientId: 'x', clientSecret: 'y', link: 'z' }, 400],
  [{ clientId: 'x', link: 'z' }, 400],
  [{ clientId: 1, clientSecret: 'y' }, 400],
  [{ link: ['z'] }, 400],
  [[], 400],
  [{ clientId: 'x', clientSecret: 'y' }, 401],
  [{ clientId: `${tenant}.${'0'.repeat(20)}`, clientSecret: 'y' }, 401],
  [{ link: 'z' }, 401],
  [{ link: `${tenant}.${'a'.repeat(43)}` }, 401],
  [{ link: `nobody.${'a'.repeat(43)}` }, 401],
  [{ link: `' or 1=1 --.${'a'.repeat(43)}` }, 401],
])('signing in with %j is %i', async (body, status) => {
  const browser = new Browser(server);
  const response = await browser.post(session, body);
  expect(response.status).toBe(status);
  expect(browser.cookie).toBeUndefined();
  if (status === 401) expect(await response.json()).toEqual(invalid);
  else expect(await response.json()).toMatchObject({ status });
});

test.each([
  [maxSignInBytes, 401],
  [maxSignInBytes + 1, 413],
])('signing in with a body of %i bytes is %i', async (bytes, status) => {
  const link = 'x'.repeat(bytes - '{"link":""}'.length);
  expect((await new Browser(server).post(session, { link })).status).toBe(status);
});

test('a body that is no JSON is refused', async () => {
  const { clientId, clientSecret } = client;
  const form = new URLSearchParams({ clientId, clientSecret }).toString();
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'text/plain; application/json', '']) {
    const browser = new Browser(server);
    const refused = await browser.call(session, { method: 'POST', body: form, headers: { 'content-type': type } });
    expect([refused.status, browser.cookie], type).toEqual([415, undefined]);
  }
});

test('the guess limiter holds, for links too, and counts guesses at the token endpoint', async () => {
  const { clientId } = await server.createClient(tenant);
  const guess = async () => (await new Browser(second).signIn({ clientId, clientSecret: 'wrong' })).status;
  for (let time = 0; time < 5; time += 1) expect(await guess()).toBe(401);
  await expect(second.tokenOf({ ...client, clientId, clientSecret: 'wrong' })).rejects.toThrow('401');
  for (let time = 0; time < 4; time += 1) expect(await guess()).toBe(401);
  const limited = await new Browser(second).signIn({ clientId, clientSecret: 'wrong' });
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '5']);

  // 10 failures of the address so far; it has 100.
  const wrongLink = async () => (await new Browser(second).redeem(`link=${tenant}.${'a'.repeat(43)}`)).status;
  const tried = await Promise.all(Array.from({ length: 90 }, wrongLink));
  expect(new Set(tried)).toEqual(new Set([401]));
  expect(await wrongLink()).toBe(429);
  // A link that is right waits as well: it was never seen before.
  const link = await linkFor();
  expect((await new Browser(second).redeem(link.fragment)).status).toBe(429);
  elapsed += 60_000;
  expect((await new Browser(second).redeem(link.fragment)).status).toBe(200);
});

test('a link signs in once, as a client without a secret that ends with its session', async () => {
  const link = await linkFor();
  expect(link.fragment).toMatch(/^link=acme\.[\w-]{43}$/);
  expect(await isListed(link.clientId)).toBe(true);
  const browser = new Browser(server);
  const begun = await browser.redeem(link.fragment);
  expect(await begun.json()).toMatchObject({ tenant, client: link.clientId, name: 'Guest', scopes: readingScopes });
  expect(await isIn(browser, second)).toBe(true);
  expect((await browser.call(`/console/api/changelog/${tenant}/changelogs`)).status).toBe(200);
  expect((await browser.call(`/console/api/changelog/other/changelogs`)).status).toBe(403);

  const again = new Browser(second);
  expect((await again.redeem(link.fragment)).status).toBe(401);
  expect(await isIn(browser)).toBe(true);
  // It has no secret, so it gets no token.
  for (const clientSecret of ['null', 'undefined', ' ']) {
    await expect(server.tokenOf({ ...client, clientId: link.clientId, clientSecret })).rejects.toThrow('401');
  }
  elapsed += 60_000;

  await browser.signOut();
  expect(await rowsOf('console_session', link.clientId)).toBe(0);
  expect(await rowsOf('oauth_client', link.clientId)).toBe(0);
});

test('of many that redeem one link at once, one is signed in', async () => {
  const link = await linkFor();
  const browsers = Array.from({ length: 8 }, (_, place) => new Browser(place % 2 === 0 ? server : second));
  const statuses = await Promise.all(browsers.map(async (browser) => (await browser.redeem(link.fragment)).status));
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  expect(await rowsOf('console_session', link.clientId)).toBe(1);
  elapsed += 60_000;
});

test('a link is good for its time and not longer', async () => {
  expect(linkLifetime).toBe(60_000);
  const { rows } = await server.database.pool.query('select now() as now');
  const link = await linkFor();
  const stored = await server.database.pool.query('select expires_at from console_link where client_id = $1', [
    link.clientId,
  ]);
  const left = stored.rows[0].expires_at - rows[0].now;
  expect(left).toBeGreaterThanOrEqual(60_000);
  expect(left).toBeLessThan(90_000);
  const late = await linkFor(1);
  await sleep(2);
  expect((await new Browser(server).redeem(late.fragment)).status).toBe(401);
  elapsed += 60_000;
});

test("a revoked client's session ends within 5 seconds in every process, and its link does not sign in", async () => {
  const own = await server.createClient(tenant);
  const browser = await signedIn(own);
  for (const at of [server, second]) expect(await isIn(browser, at)).toBe(true);
  await revokeClient(server.database.db, own.clientId);
  elapsed += 5_000;
  for (const at of [server, second]) expect(await isIn(browser, at)).toBe(false);
  expect((await new Browser(server).signIn(own)).status).toBe(401);

  const link = await linkFor();
  await revokeClient(server.database.db, link.clientId);
  expect((await new Browser(server).redeem(link.fragment)).status).toBe(401);
  elapsed += 60_000;
});

test('a session that has expired says so, and upkeep deletes it with the client of its link', async () => {
  const browser = await signedIn();
  const guest = new Browser(server);
  const link = await linkFor();
  await guest.redeem(link.fragment);
  const unused = await linkFor(1);
  const expire = (clientId: string) =>
    server.database.pool.query(
      `update console_session set expires_at = now() where client_id = $1
         and created_at = (select max(created_at) from console_session where client_id = $1)`,
      [clientId],
    );
  await expire(client.clientId);
  await expire(link.clientId);
  for (const at of [server, second]) {
    const other = new Browser(at);
    other.cookie = browser.cookie;
    const expired = await other.call(session);
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
  expect(await isListed(unused.clientId)).toBe(true);
  const others = (await rowsOf('console_session', client.clientId)) - 1;
  await server.context.webConsole.sessions.upkeep();
  expect(await rowsOf('console_session', client.clientId)).toBe(others);
  expect(await rowsOf('console_link', unused.clientId)).toBe(0);
  expect(await isIn(browser)).toBe(false);
  const left = await Promise.all([client, link, unused].map(({ clientId }) => rowsOf('oauth_client', clientId)));
  expect(left).toEqual([1, 0, 0]);
});

test('signing in again makes a new session and ends the one that the browser had', async () => {
  const browser = await signedIn();
  const first = browser.cookie;
  const guest = await linkFor();
  await browser.redeem(guest.fragment);
  const secondCookie = browser.cookie;
  await browser.signIn(client);
  expect(new Set([first, secondCookie, browser.cookie]).size).toBe(3);
  expect(await isIn(browser)).toBe(true);
  for (const cookie of [first, secondCookie]) {
    browser.cookie = cookie;
    expect(await isIn(browser)).toBe(false);
  }
  expect(await rowsOf('oauth_client', guest.clientId)).toBe(0);
  // Nor does signing in take up a session that somebody planted.
  const planted = await signedIn();
  const victim = new Browser(server);
  victim.cookie = planted.cookie;
  await victim.signIn(client);
  expect(victim.cookie).not.toBe(planted.cookie);
});

test('a failed attempt to sign in leaves the session as it is', async () => {
  const browser = await signedIn();
  expect((await browser.redeem(`link=${tenant}.${'b'.repeat(43)}`)).status).toBe(401);
  expect(await isIn(browser)).toBe(true);
  elapsed += 60_000;
});

test(`a client has ${maxSessionsOfClient} sessions; one more ends the oldest`, async () => {
  const own = await server.createClient(tenant);
  const oldest = await signedIn(own);
  const fill = maxSessionsOfClient - 2;
  await server.database.pool.query(
    `insert into console_session (tenant, secret_hash, client_id, scopes, by_link, expires_at)
       select $1, sha256(n::text::bytea), $2, '{}', false, now() + interval '1 hour' from generate_series(1, $3::integer) n`,
    [tenant, own.clientId, fill],
  );
  const newest = await signedIn(own);
  expect(await rowsOf('console_session', own.clientId)).toBe(maxSessionsOfClient);
  expect(await isIn(oldest)).toBe(true);
  await signedIn(own);
  expect(await rowsOf('console_session', own.clientId)).toBe(maxSessionsOfClient);
  expect([await isIn(oldest), await isIn(newest)]).toEqual([false, true]);
});

test('those who sign in wait for each other, and nobody else waits for them', async () => {
  const browser = await signedIn();
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
  expect(await isIn(browser)).toBe(true);
  expect((await server.call('/changelog/bystander/changelogs', { token })).status).toBe(200);
  expect(await server.token('bystander')).not.toBe(token);
  await blocker.query('rollback');
  blocker.release();
  const statuses = (await Promise.all(signingIn)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200]));
});

test('invented cookies cost no query, and the requests of one tenant share theirs', async () => {
  const browser = await signedIn();
  let queries = 0;
  const { pool } = server.context.vital;
  const count = () => {
    queries += 1;
  };
  pool.on('acquire', count);
  const name = browser.cookie?.split('=')[0];
  for (const value of ['', 'x', 'A'.repeat(230), `${tenant}.${'a'.repeat(43)}`]) {
    const other = new Browser(server);
    other.cookie = `${name}=${value}`;
    expect((await other.call(session)).status).toBe(401);
  }
  expect(queries).toBe(0);
  const answers = await Promise.all(Array.from({ length: 40 }, () => browser.call(session)));
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  expect(queries).toBeGreaterThan(0);
  expect(queries).toBeLessThan(40);
  pool.off('acquire', count);
});

test('while the database is away nobody is signed out: the answer is 503, and that of the change history its 500', async () => {
  const browser = await signedIn();
  const bringBack = await takeDatabaseAway(server.database.url);
  expect((await browser.call(session)).status).toBe(503);
  expect((await browser.call(`/console/api/configuration/${tenant}/configurations`)).status).toBe(503);
  expect((await browser.call(`/console/api/changelog/${tenant}/changelogs`)).status).toBe(500);
  expect((await new Browser(server).signIn(client)).status).toBe(503);
  expect((await browser.signOut()).status).toBe(503);
  expect(browser.cookie).toBeDefined();
  await bringBack();
  expect((await browser.call(session)).status).toBe(200);
});
