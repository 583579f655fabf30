import { randomBytes } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { revokeClient } from '../../../src/access/oauth/clients.ts';
import { signInLifetime } from '../../../src/access/sessions/people-routes.ts';
import {
  checkedEvery,
  checksEvery,
  maxSessionsOfPerson,
  sealedIdTokens,
  sealedRenewals,
} from '../../../src/access/sessions/people-sessions.ts';
import { maxRenewal } from '../../../src/access/sessions/renewal-store.ts';
import { readRules } from '../../../src/access/sign-in/rules.ts';
import { maxRulesBytes } from '../../../src/access/sign-in/service.ts';
import { createSealer } from '../../../src/core/sealing.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { resealColumn } from '../../../src/postgres/reseal.ts';
import { deleteTenant } from '../../../src/postgres/tenants/delete-tenant.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Browser } from '../../support/server/browser.ts';
import { eventually } from '../../support/server/patience.ts';
import { PeopleServer, publicUrl, rulesOf as rules, sessionOf } from '../../support/server/people.ts';
import { testSecretKeys } from '../../support/server/server.ts';
import type { Wrong } from '../../support/vendor/identity-provider.ts';

const reading = ['changelog.changelog_read'];
const managing = ['changelog.changelog_manage', 'usage.usage_read'];

let passed = 0;
/** As `passed`, of the clock that never steps back. */
let waited = 0;

const usual = rules(
  { claims: { groups: 'admins' }, tenants: ['acme'], scopes: managing },
  { claims: { groups: ['auditors', 'admins'] }, tenants: ['acme', 'beta', 'notthere'], scopes: reading },
  { claims: { email: 'eve@partner.example' }, tenants: ['beta'], scopes: reading },
  { claims: { email: 'trusted@partner.example' }, tenants: ['beta'], scopes: reading, trustEmail: true },
  { claims: { '/realm_access/roles': 'history' }, tenants: ['beta'], scopes: reading },
  { claims: { '/email': 'pointed@partner.example' }, tenants: ['beta'], scopes: reading },
);

const people = closeAfterAll(
  await PeopleServer.start(usual, { now: () => Date.now() + passed, elapsed: () => performance.now() + waited }),
);
const { server, provider, rulesFile } = people;
await server.createTenant('acme');
await server.createTenant('beta');

beforeEach(async () => {
  // A check asks the provider about each session that there is.
  await sql`delete from console_session`.execute(server.database.db);
  provider.claims = { sub: 'u-1', name: 'Jane Doe', groups: ['auditors'] };
});

afterEach(async () => {
  provider.wrong = {};
  provider.isAway = false;
  provider.givesRefreshTokens = true;
  provider.endedSubjects.clear();
  provider.userInfo = undefined;
  provider.userInfoFailures = 0;
  provider.keyFailures = 0;
  provider.scopes = undefined;
  passed = 0;
  await writeFile(rulesFile, usual);
});

const pathOf = ({ pathname, search }: URL) => `${pathname}${search}`;

const begin = (to?: string) => people.begin(to);
const comeBack = (browser: Browser, callback: URL) => people.comeBack(browser, callback);
const signIn = (to?: string) => people.signIn(to);

const refused = (reason: string) => `${publicUrl}/console/?refused=${reason}`;

describe('the flow', () => {
  test('a person comes back to where they were, with the name, scopes and tenants of the rules, for eight hours', async () => {
    const { browser, status, location, cookies } = await signIn('history?q=entity%3Aorder');
    expect([status, location]).toEqual([303, `${publicUrl}/console/history?q=entity%3Aorder`]);
    expect(cookies.some((cookie) => /annals-oidc-.*=; Max-Age=0; .*SameSite=Lax/.test(cookie))).toBe(true);
    expect(cookies.some((cookie) => /^__Host-annals-(?!oidc).*SameSite=Strict; Secure/.test(cookie))).toBe(true);
    const { body } = await sessionOf(browser);
    expect(body).toMatchObject({
      tenant: 'acme',
      name: 'Jane Doe',
      scopes: reading,
      tenants: ['acme', 'beta', 'notthere'],
    });
    expect(Date.parse(String(body.expiresAt)) - Date.now()).toBeGreaterThan(7.9 * 3_600_000);
    expect((await browser.call('/console/api/changelog/acme/changelogs')).status).toBe(200);
    expect((await browser.call('/console/api/changelog/beta/changelogs')).status).toBe(403);
  });

  test('the request to the provider has PKCE, a state and a nonce, and the cookie ends after ten minutes', async () => {
    const { browser, address } = await begin();
    const query = address.searchParams;
    expect([query.get('code_challenge_method'), query.get('response_type')]).toEqual(['S256', 'code']);
    for (const name of ['state', 'nonce', 'code_challenge']) expect(query.get(name)?.length).toBeGreaterThan(40);
    expect(browser.setCookie).toMatch(
      // With this prefix no other host of the domain can set it.
      /^__Host-annals-oidc-.*; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    );
    passed = signInLifetime;
    expect((await comeBack(browser, provider.signIn(address))).location).toBe(refused('expired'));
  });

  test('of each tenant the first rule that matches counts, alone', async () => {
    provider.claims = { ...provider.claims, groups: ['auditors', 'admins'] };
    const { browser } = await signIn();
    expect((await sessionOf(browser)).body.scopes).toEqual(managing);
    expect((await browser.post('/console/api/session', { tenant: 'beta' })).status).toBe(200);
    expect((await sessionOf(browser)).body).toMatchObject({ tenant: 'beta', scopes: reading });
  });

  test('a person changes to another tenant without signing in again, and the session of before ends', async () => {
    const { browser } = await signIn();
    const before = browser.cookie;
    expect((await browser.post('/console/api/session', { tenant: 'beta' })).status).toBe(200);
    expect((await sessionOf(browser)).body.tenant).toBe('beta');
    const old = new Browser(server, { publicUrl });
    old.cookie = before;
    expect((await sessionOf(old)).status).toBe(401);
    for (const tenant of ['notthere', 'gamma']) {
      const answer = await browser.post('/console/api/session', { tenant });
      expect([tenant, answer.status]).toEqual([tenant, tenant === 'gamma' ? 403 : 404]);
    }
    expect((await sessionOf(browser)).body.tenant).toBe('beta');
  });

  test('signing out ends the session in every process and answers with the sign-out URL of the provider', async () => {
    const { browser } = await signIn();
    const { body } = await sessionOf(browser);
    const answer = await browser.signOut();
    expect(await answer.json()).toEqual({
      signOutUrl: expect.stringMatching(
        /\/sign-out\?.*post_logout_redirect_uri=https%3A%2F%2Fannals.example%2Fconsole%2F/,
      ),
    });
    expect((await sessionOf(browser)).status).toBe(401);
    const { rows } = await sql`select from oauth_client where client_id = ${body.client}`.execute(server.database.db);
    expect(rows).toHaveLength(0);
  });

  test('the hint at sign-out is the ID token of the sign-in, of the last check, or of the last change of tenant', async () => {
    const hintOf = async (signedIn: Browser) => {
      const { signOutUrl } = (await (await signedIn.signOut()).json()) as { signOutUrl: string };
      return new URL(signOutUrl).searchParams.get('id_token_hint');
    };
    const first = await signIn();
    const firstIdToken = provider.lastIdToken;
    expect(await hintOf(first.browser)).toBe(firstIdToken);

    const { browser } = await signIn();
    const before = provider.lastIdToken;
    await people.check();
    expect((await browser.post('/console/api/session', { tenant: 'beta' })).status).toBe(200);
    expect(provider.lastIdToken).not.toBe(before);
    expect(await hintOf(browser)).toBe(provider.lastIdToken);

    // Servers refuse a request line of that length.
    provider.claims = { ...provider.claims, groups: ['auditors', ...'x'.repeat(3_000)] };
    const long = await signIn();
    expect(await hintOf(long.browser)).toBeNull();
  });

  test.each([
    ['https://evil.example/', ''],
    ['//evil.example/', 'evil.example/'],
    ['/\\evil.example', 'evil.example'],
    ['../../evil', ''],
    ['javascript:alert(1)', ''],
    ['history?page=2', 'history?page=2'],
    ['x'.repeat(2_000), 'x'.repeat(2_000)],
    ['x'.repeat(2_001), ''],
    ['history?q=ж'.padEnd(1_000, 'ж'), ''],
    ['oidc?to=oidc', ''],
    ['x/../oidc', ''],
    ['%6fidc', ''],
    ['api/session', ''],
    ['history#link=acme_x', 'history'],
    ['oidcs', 'oidcs'],
    ['\\\\evil.example', 'evil.example'],
    ['/\t/evil.example', ''],
    ['https:evil.example', ''],
    ['\r\nset-cookie: a=b', ''],
  ])('the way back never leaves the console: %#', async (to, expected) => {
    expect((await signIn(to)).location).toBe(`${publicUrl}/console/${expected}`);
  });
});

describe('who is let in', () => {
  test.each<[string, Record<string, unknown>, string | undefined]>([
    ['no one by default', { groups: [] }, 'not_admitted'],
    [
      'an e-mail address that the provider has verified',
      { email: 'eve@partner.example', email_verified: true },
      undefined,
    ],
    ['one that it has not', { email: 'eve@partner.example' }, 'not_admitted'],
    ['one that it says is not', { email: 'eve@partner.example', email_verified: 'true' }, 'not_admitted'],
    ['one that the rule trusts', { email: 'trusted@partner.example' }, undefined],
    ['a verified address that a pointer names', { email: 'pointed@partner.example', email_verified: true }, undefined],
    ['one that is not verified', { email: 'pointed@partner.example' }, 'not_admitted'],
    ['a role inside of a claim', { realm_access: { roles: ['history'] } }, undefined],
    ['a group by a part of its name', { groups: ['auditorsx'] }, 'not_admitted'],
    ['groups that were left out for their number', { _claim_names: { groups: 'src1' } }, 'groups_left_out'],
    ['a claim of the prototype', { toString: 'admins' }, 'not_admitted'],
  ])('%s', async (_what, claims, reason) => {
    provider.claims = { sub: 'u-2', ...claims };
    expect((await signIn()).location).toBe(reason === undefined ? `${publicUrl}/console/` : refused(reason));
  });

  test.each([
    [{ name: 'Zoë', email: 'z@example.org' }, 'Zoë'],
    [{ name: 'system', email: 'z@example.org' }, 'z@example.org'],
    [{ name: '\u0000' }, 'u-3'],
    [{ name: 'Jane \u202eeoD', email: 'z\u2066@example.org' }, 'u-3'],
  ])('the session is named by the first that may be an actor: %j', async (claims, name) => {
    provider.claims = { sub: 'u-3', groups: ['auditors'], ...claims };
    const { browser } = await signIn();
    expect((await sessionOf(browser)).body.name).toBe(name);
  });
});

test('a rule with a query shows a part of the history alone, and one that loses its query shows all of it', async () => {
  const only = {
    claims: { groups: 'auditors' },
    tenants: ['acme'],
    scopes: reading,
    query: 'entity:order',
    hide: ['card'],
    actors: 'all',
  };
  await writeFile(rulesFile, rules(only));
  const { browser } = await signIn();
  const feedOf = async () => (await browser.call('/console/api/changelog/acme/feed?after=now')).status;
  expect((await browser.call('/console/api/changelog/acme/changelogs')).status).toBe(200);
  expect(await feedOf()).toBe(403);
  const change = async (rule: object) => {
    await writeFile(rulesFile, rules(rule));
    await people.check();
  };
  const namesOf = async () => (await browser.call('/console/api/changelog/acme/names?field=document')).status;
  expect(await namesOf()).toBe(200);
  await change({ ...only, query: 'entity:order actorId:u-17' });
  await expect.poll(namesOf).toBe(403);
  await change({ ...only, query: undefined, hide: undefined, actors: undefined });
  await expect.poll(feedOf).toBe(200);
});

test.each<[string, string, RegExp]>([
  ['no JSON', '{', /is not valid JSON/],
  [
    'other actors',
    rules({ claims: { a: 'b' }, tenants: ['acme'], scopes: reading, actors: 'ids' }),
    /rules\.0\.actors must be false, "names", true or "all"/,
  ],
  [
    'a query on ids that it does not show',
    rules({ claims: { a: 'b' }, tenants: ['acme'], scopes: reading, query: 'actorId:u-17' }),
    /rules\.0: The query is not valid at position 1/,
  ],
  ['no rule', '{"rules":[]}', /rules must not have fewer than 1 items/],
  [
    'an unknown member',
    rules({ claims: { a: 'b' }, tenants: ['acme'], scopes: reading, role: 'x' }),
    /rules\.0\.role is not a property/,
  ],
  [
    'an unknown scope',
    rules({ claims: { a: 'b' }, tenants: ['acme'], scopes: ['all'] }),
    /rules\.0\.scopes has the unknown scope all/,
  ],
  ['no claim', rules({ claims: {}, tenants: ['acme'], scopes: reading }), /rules\.0\.claims/],
  [
    'a query that is wrong',
    rules({ claims: { a: 'b' }, tenants: ['acme'], scopes: reading, query: 'x:y' }),
    /rules\.0: .*x/,
  ],
  [
    'a regular expression',
    rules({ claims: { a: 'b' }, tenants: ['acme'], scopes: reading, query: 'actor:~^J' }),
    /rules\.0: /,
  ],
  [
    'a query with wide scopes',
    rules({ claims: { a: 'b' }, tenants: ['acme'], scopes: managing, query: 'entity:a' }),
    /cannot have changelog\.changelog_manage/,
  ],
])('the file of rules counts as a whole: %s', (_what, text, message) => {
  expect(() => readRules(text, readRestriction)).toThrow(message);
});

describe('what is refused', () => {
  const later = () => Math.floor(Date.now() / 1_000);
  test.each<[string, () => Wrong]>([
    ['another issuer', () => ({ claims: { iss: 'https://evil.example' } })],
    ['a token for another client', () => ({ claims: { aud: 'another' } })],
    ['another nonce', () => ({ claims: { nonce: 'x' } })],
    ['a key that is not published', () => ({ foreignKey: true })],
    ['no signature', () => ({ alg: 'none' })],
    ['a signature by the shared secret', () => ({ alg: 'HS256' })],
    ['a token that ended a minute ago', () => ({ claims: { exp: later() - 60 } })],
    ['a token of tomorrow', () => ({ claims: { nbf: later() + 86_400 } })],
  ])('%s', async (_what, wrong) => {
    provider.wrong = wrong();
    const { browser, location } = await signIn();
    expect(location).toBe(refused('provider'));
    expect(browser.cookie).toBeUndefined();
  });

  test('clocks may differ by some seconds', async () => {
    provider.wrong = { claims: { exp: later() - 5 } };
    expect((await signIn()).location).toBe(refused('not_admitted').replace('?refused=not_admitted', ''));
  });

  test('a callback in another browser, a code that was used, another state', async () => {
    const { browser, address } = await begin();
    const callback = provider.signIn(address);
    expect((await comeBack(new Browser(server, { publicUrl }), callback)).location).toBe(refused('expired'));
    const cookie = browser.cookie;
    const forged = new URL(callback);
    forged.searchParams.set('state', 'x');
    expect((await comeBack(browser, forged)).location).toBe(refused('expired'));
    browser.cookie = cookie;
    expect((await comeBack(browser, callback)).location).toBe(`${publicUrl}/console/`);
    browser.cookie = cookie;
    expect((await comeBack(browser, callback)).location).toBe(refused('provider'));
  });

  test('the cookie has room for the newest sign-ins alone, however many are begun', async () => {
    const { browser } = await begin();
    for (let tab = 0; tab < 3; tab += 1) {
      const answer = await browser.call(`/console/oidc?to=${'x'.repeat(2_000)}`);
      expect(answer.status).toBe(302);
      expect(browser.cookie?.length).toBeLessThan(4_096);
    }
    const last = await browser.call('/console/oidc');
    const callback = provider.signIn(new URL(last.headers.get('location') ?? ''));
    expect((await comeBack(browser, callback)).location).toBe(`${publicUrl}/console/`);
  });

  test.each<[string, (callback: URL) => void, string]>([
    ['a parameter twice', ({ searchParams }) => searchParams.append('code', 'x'), 'provider'],
    ['another issuer', ({ searchParams }) => searchParams.set('iss', 'https://evil.example'), 'provider'],
    ['a very long state', ({ searchParams }) => searchParams.set('state', 'x'.repeat(9_000)), 'expired'],
    ['no code', ({ searchParams }) => searchParams.delete('code'), 'provider'],
    [
      'an error of the provider',
      ({ searchParams }) => {
        searchParams.delete('code');
        searchParams.set('error', 'server_error');
        searchParams.set('error_description', '<b>\n');
      },
      'provider',
    ],
    [
      'a person who cancels',
      ({ searchParams }) => {
        searchParams.delete('code');
        searchParams.set('error', 'access_denied');
      },
      'declined',
    ],
  ])('%s', async (_what, change, reason) => {
    const { browser, address } = await begin();
    const callback = provider.signIn(address);
    change(callback);
    const { status, location } = await comeBack(browser, callback);
    expect([status, location]).toEqual([303, refused(reason)]);
    expect(browser.cookie).toBeUndefined();
  });

  test('a cookie of another installation, or of another purpose, counts as none', async () => {
    const { browser, address } = await begin();
    const callback = provider.signIn(address);
    const [name = '', value = ''] = browser.cookie?.split('=') ?? [];
    const forged = [
      `${name}x=${value}`,
      `${name}=${value.slice(0, -4)}AAAA`,
      `${name}=e30`,
      `${name}=${value}; ${name}=${value}`,
    ];
    for (const cookie of forged) {
      browser.cookie = cookie;
      expect((await comeBack(browser, callback)).location).toBe(refused('expired'));
    }
  });

  test('a HEAD uses nothing up', async () => {
    const { browser, address } = await begin();
    const cookie = browser.cookie;
    const callback = provider.signIn(address);
    for (const path of [pathOf(callback), '/console/oidc']) {
      const answer = await browser.call(path, { method: 'HEAD' });
      // The console's page, like any address below /console.
      expect([answer.status, answer.headers.getSetCookie()]).toEqual([200, []]);
    }
    browser.cookie = cookie;
    expect((await comeBack(browser, callback)).location).toBe(`${publicUrl}/console/`);
  });

  test('while the provider is away sign-ins are refused, and no request hangs or fails', async () => {
    const { browser, address } = await begin();
    const callback = provider.signIn(address);
    provider.isAway = true;
    expect((await comeBack(browser, callback)).location).toBe(refused('provider'));
  });

  test('no secret, code or token is in the log', async () => {
    await signIn();
    const log = server.logLines.join('\n');
    expect(log).not.toContain(provider.clientSecret);
    expect(log).not.toMatch(/code=[\w-]+/);
  });
});

/** The person's entries in the tenant's list of accesses, newest last. */
async function accessesOf(tenant: string, subject: string): Promise<object[]> {
  const token = await server.token(tenant);
  const response = await server.call(`/changelog/${tenant}/accesses?pageSize=500&q=subject:${subject}`, { token });
  const accesses = (await response.json()) as { kind: string; name: string; issuer: string; details: object }[];
  return accesses.map(({ kind, name, issuer, details }) => ({ kind, name, issuer, details }));
}

test('the accesses of a tenant list sign-ins with a company account and sign-outs', async () => {
  provider.claims = { sub: 'u-told', name: 'Tina Told', groups: ['auditors'] };
  const { browser } = await signIn();
  await browser.post('/console/api/session', { tenant: 'beta' });
  await browser.signOut();
  const of = { name: 'Tina Told', issuer: provider.issuer };
  const expected = [
    { kind: 'signed_in', ...of, details: { by: 'account' } },
    { kind: 'signed_out', ...of, details: {} },
  ];
  expect(await accessesOf('acme', 'u-told')).toEqual(expected);
  expect(await accessesOf('beta', 'u-told')).toEqual(expected);
});

describe('the check after four minutes', () => {
  test('a withdrawn right ends within five minutes, the check included', () => {
    expect(checkedEvery + checksEvery + maxRenewal).toBeLessThanOrEqual(5 * 60_000);
  });

  test('a check that failed is repeated in the next round, not after four more minutes', async () => {
    const { browser } = await signIn();
    provider.isAway = true;
    await check();
    provider.isAway = false;
    provider.endedSubjects.add('u-1');
    const { peopleSessions } = server.context.webConsole;
    await people.pass(checksEvery);
    // The clock stands still. On a slow machine the previous round may still be running.
    await eventually(async () => {
      await peopleSessions.checkPeople();
      return (await sessionOf(browser)).status;
    }).toBe(401);
  });

  const check = () => people.check();

  test('a rule that changes gives the session other scopes, or ends it', async () => {
    const { browser } = await signIn();
    await writeFile(rulesFile, rules({ claims: { groups: 'auditors' }, tenants: ['acme'], scopes: managing }));
    await check();
    expect((await sessionOf(browser)).body).toMatchObject({ scopes: managing, tenants: ['acme'] });
    await writeFile(rulesFile, '{"rules":');
    await check();
    expect((await sessionOf(browser)).body).toMatchObject({ scopes: managing });
    await writeFile(rulesFile, rules({ claims: { groups: 'others' }, tenants: ['acme'], scopes: managing }));
    await check();
    expect((await sessionOf(browser)).status).toBe(401);
    expect((await accessesOf('acme', 'u-1')).at(-1)).toMatchObject({ kind: 'refused', details: { why: 'rules' } });
  });

  test('a provider that ended the sign-in ends the session; an unreachable one does not', async () => {
    const { browser } = await signIn();
    provider.isAway = true;
    await check();
    provider.isAway = false;
    expect((await sessionOf(browser)).status).toBe(200);
    await check();
    expect((await sessionOf(browser)).status).toBe(200);
    provider.endedSubjects.add('u-1');
    await check();
    expect((await sessionOf(browser)).status).toBe(401);
    expect((await accessesOf('acme', 'u-1')).at(-1)).toMatchObject({ kind: 'refused', details: { why: 'provider' } });
  });

  test('within four minutes of a sign-in no check is made', async () => {
    const { browser } = await signIn();
    provider.endedSubjects.add('u-1');
    await server.context.webConsole.peopleSessions.checkPeople();
    expect((await sessionOf(browser)).status).toBe(200);
  });

  test('without a refresh token the session ends with the ID token, and no tenant can be changed to', async () => {
    provider.givesRefreshTokens = false;
    const { browser } = await signIn();
    const { body } = await sessionOf(browser);
    const left = Date.parse(String(body.expiresAt)) - Date.now();
    expect(left).toBeLessThanOrEqual(600_000);
    expect(left).toBeGreaterThan(500_000);
    expect((await browser.post('/console/api/session', { tenant: 'beta' })).status).toBe(401);
  });

  test('of two changes at once one happens, and the refresh token is used once', async () => {
    const { browser } = await signIn();
    const secondTab = new Browser(server, { publicUrl });
    secondTab.cookie = browser.cookie;
    const release = provider.hold();
    const first = browser.post('/console/api/session', { tenant: 'beta' });
    await expect.poll(() => provider.renewals).toBe(1);
    const second = await secondTab.post('/console/api/session', { tenant: 'beta' });
    expect([second.status, secondTab.cookie]).toEqual([503, browser.cookie]);
    release();
    expect((await first).status).toBe(200);
    const releaseCheck = provider.hold();
    const checking = check();
    await expect.poll(() => provider.renewals).toBe(1);
    expect((await browser.post('/console/api/session', { tenant: 'acme' })).status).toBe(503);
    releaseCheck();
    await checking;
    expect((await sessionOf(browser)).body).toMatchObject({ tenant: 'beta' });
    expect((await browser.post('/console/api/session', { tenant: 'acme' })).status).toBe(200);
  });

  test('the tenant cannot be changed while the provider is away, and can be afterwards', async () => {
    const { browser } = await signIn();
    provider.isAway = true;
    const answer = await browser.post('/console/api/session', { tenant: 'beta' });
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('You stay in this tenant')]);
    provider.isAway = false;
    expect((await browser.post('/console/api/session', { tenant: 'beta' })).status).toBe(200);
  });

  test('a revoked person cannot change to another tenant', async () => {
    const { browser } = await signIn();
    const { client } = (await sessionOf(browser)).body;
    await revokeClient(server.context.db, String(client));
    waited += 5_000;
    expect((await sessionOf(browser)).status).toBe(401);
    expect((await browser.post('/console/api/session', { tenant: 'beta' })).status).toBe(401);
  });

  test(`a person has ${maxSessionsOfPerson} sessions in a tenant; one more ends the oldest, with its client`, async () => {
    provider.claims = { ...provider.claims, sub: 'u-many' };
    const { browser: oldest } = await signIn();
    const { client } = (await sessionOf(oldest)).body;
    // With a client that is not theirs: it stays.
    const filling = await server.createClient('acme');
    const fill = sql`
      insert into console_session (tenant, secret_hash, client_id, scopes, by_link, expires_at, issuer, subject)
        select tenant, sha256(n::text::bytea), ${filling.clientId}, '{}', false, expires_at, issuer, subject
          from console_session, generate_series(1, ${maxSessionsOfPerson - 2}::integer) n where client_id = ${client}`;
    await fill.execute(server.database.db);
    await signIn();
    expect((await sessionOf(oldest)).status).toBe(200);
    await sql`update console_session set created_at = created_at - interval '1 hour' where client_id = ${client}`.execute(
      server.database.db,
    );
    await signIn();
    expect((await sessionOf(oldest)).status).toBe(401);
    const { rows } = await sql`select from oauth_client where client_id = ${client}`.execute(server.database.db);
    expect(rows).toHaveLength(0);
    provider.claims = { sub: 'u-1', groups: ['auditors'] };
    expect((await sessionOf((await signIn()).browser)).status).toBe(200);
  });

  test('the previous rules stay in force while no file can be read', async () => {
    const aside = `${rulesFile}.aside`;
    await rename(rulesFile, aside);
    const log = () => server.logLines.filter((line) => line.includes('stay as they were')).length;
    const before = log();
    const works = async () => expect((await signIn()).location).toBe(`${publicUrl}/console/`);
    await works();
    await works();
    // It is logged once.
    expect(log()).toBe(before + 1);
    await mkdir(rulesFile);
    await works();
    await rm(rulesFile, { recursive: true });
    const none = rules({ claims: { groups: 'others' }, tenants: ['acme'], scopes: reading });
    await writeFile(rulesFile, none.padEnd(maxRulesBytes + 1));
    await works();
    expect(log()).toBeGreaterThanOrEqual(before + 3);
    await writeFile(rulesFile, none.padEnd(maxRulesBytes));
    expect((await signIn()).location).toBe(refused('not_admitted'));
    await rm(rulesFile);
    await rename(aside, rulesFile);
  });

  test('the session of a tenant that is deleted ends, and the person signs in to the next one', async () => {
    await server.createTenant('aardvark');
    const rule = { claims: { groups: 'auditors' }, tenants: ['aardvark', 'beta'], scopes: reading };
    await writeFile(rulesFile, rules(rule));
    const { browser } = await signIn();
    expect((await sessionOf(browser)).body.tenant).toBe('aardvark');
    await deleteTenant(server.database.db, 'aardvark');
    expect((await sessionOf(browser)).status).toBe(401);
    await check();
    expect((await sessionOf((await signIn()).browser)).body.tenant).toBe('beta');
  });

  test('when the secret key changes, the refresh tokens are sealed again', async () => {
    await signIn();
    const fresh = randomBytes(32);
    const both = createSealer([fresh, ...testSecretKeys]);
    for (const column of [sealedRenewals, sealedIdTokens]) {
      const reseal = () => resealColumn(server.database.db, both, column);
      expect(await reseal()).toEqual({ resealed: 1, current: 0, unreadable: 0 });
      expect(await reseal()).toEqual({ resealed: 0, current: 1, unreadable: 0 });
    }
  });
});
