import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { linkLifetime } from '../../src/access/sessions/links.ts';
import { maxSignInBytes } from '../../src/access/sessions/routes.ts';
import { sessionLifetime } from '../../src/access/sessions/sessions.ts';
import { readingScopes, scopes } from '../../src/http/scopes.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { Browser, type ConsoleSession } from '../support/server/browser.ts';
import {
  invalidToken,
  isListed,
  isSignedIn,
  linkFor,
  rowsOf,
  sessionPath,
  signIn,
} from '../support/server/console-sessions.ts';
import { startTestServer } from '../support/server/server.ts';

const tenant = 'acme';

let elapsed = 0;
const clock = { elapsed: () => elapsed };
const server = closeAfterAll(await startTestServer({ clock }));
/** Another process on the same database. */
const second = closeAfterAll(await startTestServer({ clock, database: server.database }));
const client = await server.createClient(tenant, { name: 'Jane Doe' });

test('a client signs in with its id and secret, is seen by every process, and signs out', async () => {
  const browser = new Browser(server);
  const begun = await browser.signIn(client);
  expect(begun.status).toBe(200);
  const session = (await begun.json()) as ConsoleSession;
  expect(session).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{16}$/),
    by: 'secret',
    tenant,
    client: client.clientId,
    name: 'Jane Doe',
    scopes,
    expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  });
  const left = Date.parse(session.expiresAt) - Date.now();
  expect(left).toBeLessThanOrEqual(sessionLifetime);
  expect(left).toBeGreaterThan(sessionLifetime - 60_000);
  expect(sessionLifetime).toBe(8 * 3_600_000);
  expect(browser.setCookie).toMatch(
    /^annals-[0-9a-f-]{36}=[\w-]{100,400}; Max-Age=28800; Path=\/console\/api; HttpOnly; SameSite=Strict$/,
  );

  for (const at of [server, second]) {
    const copy = new Browser(at);
    copy.cookie = browser.cookie;
    const answer = await copy.call(sessionPath);
    expect(await answer.json()).toEqual(session);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect((await copy.call(`/console/api/changelog/${tenant}/changelogs`)).status).toBe(200);
  }

  expect(await (await browser.call(`${sessionPath}?sealed=true`)).json()).toEqual({ ...session, isSealed: false });
  const cookie = browser.cookie;
  const ended = await browser.signOut();
  expect([ended.status, browser.setCookie]).toEqual([204, expect.stringContaining('=; Max-Age=0; ')]);
  browser.cookie = cookie;
  for (const at of [server, second]) expect(await isSignedIn(browser, at)).toBe(false);
  expect(await isListed(server, tenant, client.clientId)).toBe(true);
});

test('signing out without a session is no error', async () => {
  expect((await new Browser(server).signOut()).status).toBe(204);
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
  const response = await browser.post(sessionPath, body);
  expect(response.status).toBe(status);
  expect(browser.cookie).toBeUndefined();
  if (status === 401) expect(await response.json()).toEqual(invalidToken);
  else expect(await response.json()).toMatchObject({ status });
});

test.each([
  [maxSignInBytes, 401],
  [maxSignInBytes + 1, 413],
])('signing in with a body of %i bytes is %i', async (bytes, status) => {
  const link = 'x'.repeat(bytes - '{"link":""}'.length);
  expect((await new Browser(server).post(sessionPath, { link })).status).toBe(status);
});

test('a body that is no JSON is refused', async () => {
  const { clientId, clientSecret } = client;
  const form = new URLSearchParams({ clientId, clientSecret }).toString();
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'text/plain; application/json', '']) {
    const browser = new Browser(server);
    const refused = await browser.call(sessionPath, { method: 'POST', body: form, headers: { 'content-type': type } });
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
  const link = await linkFor(server, tenant);
  expect((await new Browser(second).redeem(link.fragment)).status).toBe(429);
  elapsed += 60_000;
  expect((await new Browser(second).redeem(link.fragment)).status).toBe(200);
});

test('a link signs in once, as a client without a secret that ends with its session', async () => {
  const link = await linkFor(server, tenant);
  expect(link.fragment).toMatch(/^link=acme\.[\w-]{43}$/);
  expect(await isListed(server, tenant, link.clientId)).toBe(true);
  const browser = new Browser(server);
  const begun = await browser.redeem(link.fragment);
  expect(await begun.json()).toMatchObject({ tenant, client: link.clientId, name: 'Guest', scopes: readingScopes });
  // Those of sessions, clients and keys are granted by name alone.
  expect(readingScopes).toContain('configuration.configuration_view');
  expect(readingScopes.filter((scope) => scope.startsWith('access.'))).toEqual([]);
  expect(await isSignedIn(browser, second)).toBe(true);
  expect((await browser.call(`/console/api/changelog/${tenant}/changelogs`)).status).toBe(200);
  expect((await browser.call(`/console/api/changelog/other/changelogs`)).status).toBe(403);

  const again = new Browser(second);
  expect((await again.redeem(link.fragment)).status).toBe(401);
  expect(await isSignedIn(browser, server)).toBe(true);
  // It has no secret, so it gets no token.
  for (const clientSecret of ['null', 'undefined', ' ']) {
    await expect(server.tokenOf({ ...client, clientId: link.clientId, clientSecret })).rejects.toThrow('401');
  }
  elapsed += 60_000;

  await browser.signOut();
  expect(await rowsOf(server, 'console_session', link.clientId)).toBe(0);
  expect(await rowsOf(server, 'oauth_client', link.clientId)).toBe(0);
});

test('of many that redeem one link at once, one is signed in', async () => {
  const link = await linkFor(server, tenant);
  const browsers = Array.from({ length: 8 }, (_, place) => new Browser(place % 2 === 0 ? server : second));
  const statuses = await Promise.all(browsers.map(async (browser) => (await browser.redeem(link.fragment)).status));
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  expect(await rowsOf(server, 'console_session', link.clientId)).toBe(1);
  elapsed += 60_000;
});

test('a link is good for its time and not longer', async () => {
  expect(linkLifetime).toBe(60_000);
  const { rows } = await server.database.pool.query('select now() as now');
  const link = await linkFor(server, tenant);
  const stored = await server.database.pool.query('select expires_at from console_link where client_id = $1', [
    link.clientId,
  ]);
  const { rows: after } = await server.database.pool.query('select now() as now');
  const { expires_at: expiresAt } = stored.rows[0];
  expect(expiresAt - rows[0].now).toBeGreaterThanOrEqual(60_000);
  expect(expiresAt - after[0].now).toBeLessThanOrEqual(60_000);
  const late = await linkFor(server, tenant, 1);
  await sleep(2);
  expect((await new Browser(server).redeem(late.fragment)).status).toBe(401);
  elapsed += 60_000;
});

test('signing in again makes a new session and ends the one that the browser had', async () => {
  const browser = await signIn(server, client);
  const first = browser.cookie;
  const guest = await linkFor(server, tenant);
  await browser.redeem(guest.fragment);
  const secondCookie = browser.cookie;
  await browser.signIn(client);
  expect(new Set([first, secondCookie, browser.cookie]).size).toBe(3);
  expect(await isSignedIn(browser, server)).toBe(true);
  for (const cookie of [first, secondCookie]) {
    browser.cookie = cookie;
    expect(await isSignedIn(browser, server)).toBe(false);
  }
  expect(await rowsOf(server, 'oauth_client', guest.clientId)).toBe(0);
  // Nor does signing in take up a session that somebody planted.
  const planted = await signIn(server, client);
  const victim = new Browser(server);
  victim.cookie = planted.cookie;
  await victim.signIn(client);
  expect(victim.cookie).not.toBe(planted.cookie);
});

test('a failed attempt to sign in leaves the session as it is', async () => {
  const browser = await signIn(server, client);
  expect((await browser.redeem(`link=${tenant}.${'b'.repeat(43)}`)).status).toBe(401);
  expect(await isSignedIn(browser, server)).toBe(true);
  elapsed += 60_000;
});
