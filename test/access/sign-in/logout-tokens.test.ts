import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { guessLimits } from '../../../src/access/oauth/guess-limiter.ts';
import { forgetOldTokens } from '../../../src/access/sessions/backchannel-logout.ts';
import { logoutTokenLimits } from '../../../src/access/sign-in/logout-token.ts';
import { keysLifetime } from '../../../src/access/sign-in/provider.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Browser } from '../../support/server/browser.ts';
import { PeopleServer, publicUrl, rulesOf, sessionOf } from '../../support/server/people.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';

let passed = 0;
let waited = 0;
/** In place of the clock that runs, where a test counts what happens within a time. */
let standing: number | undefined;
const clock = { now: () => Date.now() + passed, elapsed: () => (standing ?? performance.now()) + waited };
const scopes = ['changelog.changelog_read', 'changelog.access_read'];
const people = closeAfterAll(
  await PeopleServer.start(rulesOf({ claims: { groups: 'all' }, tenants: ['acme', 'beta'], scopes }), clock),
);
const { server, provider } = people;
await server.createTenant('acme');
await server.createTenant('beta');
/** Another process on the same database. */
const second = closeAfterAll(
  await startTestServer({ environment: people.environment, database: server.database, clock }),
);

beforeEach(async () => {
  await sql`delete from console_session`.execute(server.database.db);
  // The guess limiter forgets.
  waited += 600_000;
});

afterEach(() => {
  passed = 0;
  standing = undefined;
  provider.isAway = false;
});

const path = '/console/oidc/backchannel-logout';

async function post(form: Record<string, string> | string, headers: Record<string, string> = {}, at = server) {
  const answer = await fetch(`${at.baseUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
  });
  const text = await answer.text();
  return { status: answer.status, text, headers: answer.headers };
}

const logOut = async (token: string, at?: TestServer) => await post({ logout_token: token }, {}, at);

const refusal = (description: string) => ({
  status: 400,
  body: { error: 'invalid_request', error_description: description },
});

async function refusalOf(token: string) {
  const { status, text, headers } = await logOut(token);
  expect(headers.get('cache-control')).toBe('no-store');
  return { status, body: JSON.parse(text) };
}

/** The browser of a person whom the provider knows by a session. */
async function signIn(sub: string, sid?: string, to = '') {
  provider.claims = { sub, name: `Person ${sub}`, groups: ['all'], ...(sid !== undefined && { sid }) };
  return (await people.signIn(to)).browser;
}

async function statusAt(browser: Browser, at = server): Promise<number> {
  const copy = new Browser(at, { publicUrl });
  copy.cookie = browser.cookie;
  return (await sessionOf(copy)).status;
}

const seconds = () => Math.floor(Date.now() / 1_000);

describe('a logout token', () => {
  test.each<[string, (sid: string) => Promise<string>, string]>([
    [
      'of another issuer',
      (sid) => provider.logoutToken({ sid, iss: 'https://other.example' }),
      'iss is another issuer',
    ],
    ['of another client', (sid) => provider.logoutToken({ sid, aud: 'other' }), 'aud is another client'],
    ['of several other clients', (sid) => provider.logoutToken({ sid, aud: ['a', 'b'] }), 'aud is another client'],
    ['without aud', (sid) => provider.logoutToken({ sid, aud: undefined }), 'aud is another client'],
    ['without iat', (sid) => provider.logoutToken({ sid, iat: undefined }), 'iat must be a time that has passed'],
    [
      'from the future',
      (sid) => provider.logoutToken({ sid, iat: seconds() + logoutTokenLimits.clockTolerance + 5 }),
      'iat must be a time that has passed',
    ],
    [
      'that is old',
      (sid) =>
        provider.logoutToken({ sid, iat: seconds() - logoutTokenLimits.age - logoutTokenLimits.clockTolerance - 5 }),
      'iat is too old',
    ],
    ['that has expired', (sid) => provider.logoutToken({ sid, exp: seconds() - 60 }), 'exp has passed'],
    ['with a nonce', (sid) => provider.logoutToken({ sid, nonce: 'n' }), 'nonce must be missing'],
    [
      'without events',
      (sid) => provider.logoutToken({ sid, events: undefined }),
      'events must have the event of a back-channel logout',
    ],
    [
      'with another event',
      (sid) => provider.logoutToken({ sid, events: { 'https://other.example/event': {} } }),
      'events must have the event of a back-channel logout',
    ],
    [
      'with an event that is no object',
      (sid) => provider.logoutToken({ sid, events: { 'http://schemas.openid.net/event/backchannel-logout': 'yes' } }),
      'events must have the event of a back-channel logout',
    ],
    ['without jti', (sid) => provider.logoutToken({ sid, jti: undefined }), 'jti is missing'],
    ['of nobody', () => provider.logoutToken({}), 'sub and sid are missing'],
    ['whose sub cannot be stored', () => provider.logoutToken({ sub: 'u\u0000' }), 'sub and sid must be texts'],
    ['whose sid is a number', () => provider.logoutToken({ sid: 1, sub: 'u-1' }), 'sub and sid must be texts'],
    [
      'without a signature',
      (sid) => provider.logoutToken({ sid }, { alg: 'none' }),
      'alg must be that of a public key',
    ],
    [
      'that the secret of the client signed',
      (sid) => provider.logoutToken({ sid }, { alg: 'HS256' }),
      'alg must be that of a public key',
    ],
    ['of another type', (sid) => provider.logoutToken({ sid }, { typ: 'at+jwt' }), 'typ must be logout+jwt'],
    ['of another key', (sid) => provider.logoutToken({ sid }, { foreignKey: true }), 'The signature is not valid'],
    [
      'that was changed',
      async (sid) => {
        const [header, , signature] = (await provider.logoutToken({ sid: 'other' })).split('.');
        const [, claims] = (await provider.logoutToken({ sid })).split('.');
        return [header, claims, signature].join('.');
      },
      'The signature is not valid',
    ],
    ['that is an ID token', async () => provider.lastIdToken, 'jti is missing'],
    ['that is no token', async () => 'a.b.c', 'logout_token is not a signed JWT'],
  ])('%s is refused, and ends nothing', async (_what, make, description) => {
    const browser = await signIn('u-1', 's-1');
    expect(await refusalOf(await make('s-1'))).toEqual(refusal(description));
    expect(await statusAt(browser)).toBe(200);
  });

  test('counts just within the limits of its age, without exp and typ, and for several clients', async () => {
    const { age, clockTolerance } = logoutTokenLimits;
    for (const claims of [
      { iat: seconds() - age - clockTolerance + 5 },
      { iat: seconds() + clockTolerance - 5 },
      { exp: undefined },
      { aud: ['other', provider.clientId] },
    ]) {
      const browser = await signIn('u-1', 's-1');
      const { status, headers, text } = await logOut(
        await provider.logoutToken({ sid: 's-1', ...claims }, { typ: undefined as never }),
      );
      expect([claims, status, text, headers.get('cache-control')]).toEqual([claims, 200, '', 'no-store']);
      expect(await statusAt(browser)).toBe(401);
    }
  });

  test('counts once, in all processes; its id is forgotten after ten minutes, when it is too old anyway', async () => {
    const token = await provider.logoutToken({ sid: 's-1' });
    expect((await logOut(token)).status).toBe(200);
    const browser = await signIn('u-1', 's-1');
    for (const at of [server, second]) {
      const { status, text } = await logOut(token, at);
      expect([status, JSON.parse(text)]).toEqual([400, refusal('jti was used before').body]);
    }
    expect(await statusAt(browser)).toBe(200);
    const kept = async () =>
      Number((await sql<{ n: string }>`select count(*) as n from logout_token`.execute(server.database.db)).rows[0]?.n);
    const before = await kept();
    await forgetOldTokens(server.database.db);
    expect(await kept()).toBe(before);
    await sql`update logout_token set expires_at = statement_timestamp()`.execute(server.database.db);
    await forgetOldTokens(server.database.db);
    expect(await kept()).toBe(0);
  });

  test('whose process died before it ended the sessions counts for a repeat, once its lease has ended', async () => {
    const { db } = server.database;
    await sql`delete from logout_token`.execute(db);
    const token = await provider.logoutToken({ sid: 's-1' });
    expect((await logOut(token)).status).toBe(200);
    // As the process would have left it.
    await sql`update logout_token set expires_at = statement_timestamp()`.execute(db);
    const browser = await signIn('u-1', 's-1');
    expect((await logOut(token, second)).status).toBe(200);
    expect(await statusAt(browser)).toBe(401);
    const { rows } = await sql<{ isKept: boolean }>`
      select expires_at > statement_timestamp() + interval '9 minutes' as "isKept" from logout_token`.execute(db);
    expect(rows).toEqual([{ isKept: true }]);
  });

  test('of many that arrive at once with one id, one counts', async () => {
    const token = await provider.logoutToken({ sid: 's-1' });
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => logOut(token, n % 2 ? server : second)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  test('needs no cookie and no origin, and is not judged by them', async () => {
    const browser = await signIn('u-1', 's-1');
    const token = await provider.logoutToken({ sid: 's-1' });
    const headers = { origin: 'https://login.example', 'sec-fetch-site': 'cross-site', cookie: browser.cookie ?? '' };
    const answer = await post({ logout_token: token, other: 'is ignored' }, headers);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(await statusAt(browser)).toBe(401);
  });

  test.each<[string, string, Record<string, string>]>([
    ['is missing', 'token=x', {}],
    ['stands there twice', 'logout_token=a&logout_token=b', {}],
    ['is in JSON', '{"logout_token":"a"}', { 'content-type': 'application/json' }],
    ['is not UTF-8', 'logout_token=%ff', {}],
  ])('that %s is refused', async (_what, form, headers) => {
    const { status, text } = await post(form, headers);
    expect([status, JSON.parse(text)]).toEqual([
      400,
      refusal('The body must be a form (application/x-www-form-urlencoded) with one logout_token').body,
    ]);
  });

  test('is not taken where nobody signs in with an account', async () => {
    const own = await startTestServer({ database: server.database });
    onTestFinished(own.close);
    expect((await logOut(await provider.logoutToken({ sid: 's-1' }), own)).status).toBe(405);
  });
});

describe('ends', () => {
  test('with a sid the sessions of that session of the provider, in every tenant and process, and no others', async () => {
    const here = await signIn('u-1', 's-1');
    const there = await signIn('u-1', 's-1', '?tenant=beta');
    expect((await sessionOf(there)).body.tenant).toBe('beta');
    const elsewhere = await signIn('u-1', 's-2');
    const other = await signIn('u-2', 's-3');
    for (const at of [server, second]) expect(await statusAt(here, at)).toBe(200);
    expect((await logOut(await provider.logoutToken({ sid: 's-1' }))).status).toBe(200);
    for (const at of [server, second])
      expect([await statusAt(here, at), await statusAt(there, at), await statusAt(elsewhere, at)]).toEqual([
        401, 401, 200,
      ]);
    expect(await statusAt(other)).toBe(200);
  });

  test('with a sub all sessions of the person, and of nobody else', async () => {
    const all = [await signIn('u-1', 's-1'), await signIn('u-1'), await signIn('u-1', 's-2', '?tenant=beta')];
    const other = await signIn("u-1' or true --", 's-1');
    expect((await logOut(await provider.logoutToken({ sub: 'u-1' }), second)).status).toBe(200);
    expect(await Promise.all(all.map((browser) => statusAt(browser)))).toEqual([401, 401, 401]);
    expect(await statusAt(other)).toBe(200);
    expect((await logOut(await provider.logoutToken({ sub: "u-1' or true --" }))).status).toBe(200);
    expect(await statusAt(other)).toBe(401);
  });

  test("with both the sessions of that session that are the person's", async () => {
    const own = await signIn('u-1', 's-1');
    const otherSession = await signIn('u-1', 's-2');
    const otherPerson = await signIn('u-2', 's-1');
    expect((await logOut(await provider.logoutToken({ sub: 'u-1', sid: 's-1' }))).status).toBe(200);
    expect([await statusAt(own), await statusAt(otherSession), await statusAt(otherPerson)]).toEqual([401, 200, 200]);
  });

  test('nothing where there is no such session, which is no error', async () => {
    const browser = await signIn('u-1', 's-1');
    expect((await logOut(await provider.logoutToken({ sid: 'unknown' }))).status).toBe(200);
    expect(await statusAt(browser)).toBe(200);
  });

  test('the session that followed a change of tenant or a check, where the provider names it again or not', async () => {
    const browser = await signIn('u-1', 's-1');
    expect((await browser.post('/console/api/session', { tenant: 'beta' })).status).toBe(200);
    provider.claims = { sub: 'u-1', groups: ['all'] };
    await people.check();
    expect((await browser.post('/console/api/session', { tenant: 'acme' })).status).toBe(200);
    expect((await logOut(await provider.logoutToken({ sid: 's-1' }))).status).toBe(200);
    expect(await statusAt(browser)).toBe(401);
  });

  test('a session with an access that says why', async () => {
    const browser = await signIn('u-1', 's-1');
    const session = String((await sessionOf(browser)).body.id);
    const client = String((await sessionOf(browser)).body.client);
    expect((await logOut(await provider.logoutToken({ sid: 's-1' }))).status).toBe(200);
    const token = await server.token('acme');
    const answer = await server.call(
      `/changelog/acme/accesses?q=${encodeURIComponent(`client:"${client}" kind:refused`)}`,
      { token },
    );
    expect(await answer.json()).toMatchObject([
      { name: 'Person u-1', subject: 'u-1', session, details: { why: 'provider' }, count: 1 },
    ]);
  });
});

describe('keys of the person', () => {
  async function makeKey(browser: Browser): Promise<string> {
    const made = await browser.post('/console/api/session/keys', {});
    expect(made.status).toBe(201);
    return ((await made.json()) as { key: string }).key;
  }

  async function useKey(key: string, at: TestServer): Promise<number> {
    const answer = await fetch(`${at.baseUrl}/mcp/acme`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    });
    await answer.body?.cancel();
    return answer.status;
  }

  test.each<[string, Record<string, string>]>([
    ['sid', { sid: 's-1' }],
    ['sub', { sub: 'u-1' }],
  ])('end with their session by its %s, within five seconds in another process', async (_what, claims) => {
    const key = await makeKey(await signIn('u-1', 's-1'));
    const other = await makeKey(await signIn('u-2', 's-2'));
    for (const at of [server, second]) expect(await useKey(key, at)).toBe(200);
    expect(await useKey(other, second)).toBe(200);
    expect((await logOut(await provider.logoutToken(claims))).status).toBe(200);
    waited += 5_000;
    for (const at of [server, second]) expect(await useKey(key, at)).toBe(401);
    expect(await useKey(other, second)).toBe(200);
  });

  test('outlive signing out, which the provider answers with a logout of that session, and no logout of the person', async () => {
    const browser = await signIn('u-1', 's-1');
    const key = await makeKey(browser);
    await browser.signOut();
    expect((await logOut(await provider.logoutToken({ sub: 'u-1', sid: 's-1' }))).status).toBe(200);
    waited += 5_000;
    expect(await useKey(key, server)).toBe(200);
    expect((await logOut(await provider.logoutToken({ sub: 'u-1' }))).status).toBe(200);
    waited += 5_000;
    expect(await useKey(key, server)).toBe(401);
  });

  test('end with a logout of their session, also after that one has expired', async () => {
    const key = await makeKey(await signIn('u-1', 's-1'));
    await sql`update console_session set expires_at = statement_timestamp()`.execute(server.database.db);
    await server.context.webConsole.sessions.upkeep();
    expect(await useKey(key, server)).toBe(200);
    expect((await logOut(await provider.logoutToken({ sid: 's-1' }))).status).toBe(200);
    waited += 5_000;
    expect(await useKey(key, server)).toBe(401);
  });
});

describe('keys of the provider', () => {
  test('that were replaced, also under the same id, are read again within ten seconds, and never more often', async () => {
    passed = keysLifetime;
    expect((await logOut(await provider.logoutToken({ sid: 's-1' }))).status).toBe(200);
    await provider.rotateKeys(provider.kid);
    const reads = provider.keyReads;
    const refused = Array.from({ length: 20 }, async () => await logOut(await provider.logoutToken({ sid: 's-1' })));
    expect(new Set((await Promise.all(refused)).map(({ status }) => status))).toEqual(new Set([400]));
    expect(provider.keyReads).toBe(reads);
    passed += keysLifetime;
    const counted = Array.from({ length: 20 }, async () => await logOut(await provider.logoutToken({ sid: 's-1' })));
    expect(new Set((await Promise.all(counted)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(provider.keyReads).toBe(reads + 1);
    // A sign-in reads them too.
    await provider.rotateKeys(provider.kid);
    passed += keysLifetime;
    expect(await statusAt(await signIn('u-1'))).toBe(200);
  });

  test('that cannot be read are an outage, not the fault of the token, which counts when they can', async () => {
    passed += 10 * keysLifetime;
    provider.isAway = true;
    const token = await provider.logoutToken({ sid: 's-1' });
    const { status, text, headers } = await logOut(token);
    expect([status, headers.get('cache-control')]).toEqual([503, 'no-store']);
    expect(JSON.parse(text)).toMatchObject({ type: 'service_unavailable' });
    provider.isAway = false;
    passed += 1_000;
    expect((await logOut(token)).status).toBe(200);
  });
});

test('an address has as many wrong tokens as wrong secrets; right ones do not count', async () => {
  const { burst } = guessLimits.perAddress;
  const wrong = async () => (await logOut(await provider.logoutToken({ sid: 's-1', nonce: 'n' }))).status;
  const right = async () => (await logOut(await provider.logoutToken({ sid: 's-1' }))).status;
  standing = performance.now();
  for (let n = 0; n < burst + 1; n += 20)
    expect(new Set(await Promise.all(Array.from({ length: 20 }, right)))).toEqual(new Set([200]));
  for (let n = 0; n < burst; n += 20)
    expect(new Set(await Promise.all(Array.from({ length: 20 }, wrong)))).toEqual(new Set([400]));
  const { status, headers } = await logOut(await provider.logoutToken({ sid: 's-1' }));
  expect([status, headers.get('retry-after')]).toEqual([429, '1']);
  // Another address is not delayed.
  const elsewhere = { 'x-forwarded-for': '203.0.113.9' };
  expect((await post({ logout_token: await provider.logoutToken({ sid: 's-1' }) }, elsewhere)).status).toBe(200);
  waited += guessLimits.perAddress.interval;
  expect(await right()).toBe(200);
});

test('the log says why a token was refused, and has neither the token nor anything of it', async () => {
  const token = await provider.logoutToken({ sid: 'canary-sid', sub: 'canary-sub', nonce: 'canary-nonce' });
  await logOut(token);
  const log = server.logLines.join('');
  expect(log).toContain('"reason":"nonce must be missing"');
  for (const text of ['canary', token]) expect(log).not.toContain(text);
});
