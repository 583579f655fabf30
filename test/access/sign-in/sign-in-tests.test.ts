import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { signInLifetime } from '../../../src/access/sessions/people-routes.ts';
import { testLifetime, testLimits } from '../../../src/access/sessions/sign-in-test.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Browser } from '../../support/server/browser.ts';
import { PeopleServer, publicUrl, rulesOf, sessionOf } from '../../support/server/people.ts';
import { startTestServer } from '../../support/server/server.ts';
import type { Wrong } from '../../support/vendor/identity-provider.ts';

let passed = 0;
let waited = 0;
const reading = ['changelog.changelog_read'];
const rules = rulesOf(
  { claims: { groups: 'admins' }, tenants: ['acme'], scopes: ['access.credential_manage', ...reading] },
  { claims: { groups: 'viewers' }, tenants: ['acme'], scopes: ['access.credential_view'] },
  { claims: { department: 'secret-department' }, tenants: ['beta'], scopes: reading },
  { claims: { email: ['eve@partner.example'], amr: 'mfa' }, tenants: ['acme', 'beta'], scopes: reading },
  { claims: { groups: 'part' }, tenants: ['acme'], scopes: reading, query: 'entity:order', hide: ['card'] },
);
const people = closeAfterAll(
  await PeopleServer.start(rules, { now: () => Date.now() + passed, elapsed: () => performance.now() + waited }),
);
const { server, provider } = people;
await server.createTenant('acme');
await server.createTenant('beta');

const admin = { sub: 'u-admin', name: 'Ada Admin', groups: ['admins'] };

beforeEach(async () => {
  await sql`delete from console_session`.execute(server.database.db);
  waited += 600_000;
  provider.claims = admin;
});

afterEach(() => {
  passed = 0;
  provider.isAway = false;
  provider.wrong = {};
  provider.scopes = undefined;
});

const path = '/console/api/session/sign-in';

interface Shown {
  issuer: string;
  rules: object[];
  test?: {
    at: string;
    outcome: string;
    isOwn?: boolean;
    subject?: string;
    name?: string;
    claims?: { name: string; value?: string }[];
    rules?: { claims: { claim: string; fault?: string }[] }[];
  };
}

const shownTo = async (browser: Browser): Promise<Shown> => (await (await browser.call(path)).json()) as Shown;

/** Begins a test in the browser of a session; `way` has the cookie of the test alone, as after a redirect. */
async function begin(browser: Browser) {
  const session = browser.cookie;
  const answer = await browser.post(path, {});
  expect(answer.status).toBe(200);
  const { url } = (await answer.json()) as { url: string };
  const way = new Browser(server, { publicUrl });
  way.cookie = browser.cookie;
  browser.cookie = session;
  return { way, address: new URL(url) };
}

/** Somebody signs in at the provider, and comes back. */
async function comeBack(way: Browser, address: URL, claims: Record<string, unknown> = admin) {
  provider.claims = claims;
  return await people.comeBack(way, provider.signIn(address));
}

async function tested(browser: Browser, claims: Record<string, unknown> = admin) {
  const { way, address } = await begin(browser);
  const back = await comeBack(way, address, claims);
  expect([back.status, back.location]).toEqual([303, `${publicUrl}/console/security/sign-in`]);
  return await shownTo(browser);
}

const sessions = async () =>
  Number((await sql<{ n: string }>`select count(*) as n from console_session`.execute(server.database.db)).rows[0]?.n);

test('the page has the issuer and the rules of the tenant alone', async () => {
  const { browser } = await people.signIn();
  const { issuer, rules: shown, test: none } = await shownTo(browser);
  expect([issuer, none]).toEqual([provider.issuer, undefined]);
  expect(shown).toMatchObject([
    { claims: [{ claim: 'groups', values: ['admins'] }], scopes: ['access.credential_manage', ...reading] },
    { claims: [{ claim: 'groups', values: ['viewers'] }] },
    { claims: [{ claim: 'email', values: ['eve@partner.example'] }, { claim: 'amr' }], trustsEmail: false },
    { query: 'entity:order', hide: ['card'] },
  ]);
  expect(JSON.stringify(shown)).not.toContain('secret-department');
});

describe('a test', () => {
  test("of one's own sign-in shows the claims with their values, and what each rule says, and makes no session", async () => {
    const { browser } = await people.signIn();
    const before = await sql`select count(*) as n from access_event`.execute(server.database.db);
    const clients = await sql`select count(*) as n from oauth_client`.execute(server.database.db);
    const { test: result } = await tested(browser, { ...admin, email: 'eve@partner.example' });
    expect(result).toMatchObject({ outcome: 'admitted', isOwn: true, subject: 'u-admin', name: 'Ada Admin' });
    const values = Object.fromEntries(result?.claims?.map(({ name, value }) => [name, value]) ?? []);
    expect(values).toMatchObject({ sub: '"u-admin"', groups: '["admins"]', email: '"eve@partner.example"' });
    expect(result?.rules).toHaveLength(4);
    expect(result?.rules?.map(({ claims }) => claims.map(({ fault }) => fault ?? 'holds'))).toEqual([
      ['holds'],
      ['different'],
      ['not_verified', 'missing'],
      ['different'],
    ]);
    expect(JSON.stringify(result)).not.toContain('secret-department');
    expect(await sessions()).toBe(1);
    expect(await sql`select count(*) as n from oauth_client`.execute(server.database.db)).toEqual(clients);
    expect(await sql`select count(*) as n from access_event`.execute(server.database.db)).toEqual(before);
  });

  test('sets no cookie of a session, and asks for no refresh token', async () => {
    const { browser } = await people.signIn();
    provider.scopes = ['openid', 'offline_access'];
    const { way, address } = await begin(browser);
    expect(address.searchParams.get('scope')).toBe('openid profile email');
    const { cookies } = await comeBack(way, address);
    expect(cookies.filter((cookie) => !/^__Host-annals-oidc-[^=]*=; Max-Age=0/.test(cookie))).toEqual([]);
    const renewals = await sql`select from console_session where sealed_renewal is not null`.execute(
      server.database.db,
    );
    expect(renewals.rows).toHaveLength(1);
  });

  test('of another person shows the names of claims and the rules, and no value, also not in the database', async () => {
    const { browser } = await people.signIn();
    const { test: result } = await tested(browser, { sub: 'canary-sub', name: 'Canary Name', phone: 'canary-phone' });
    expect(result).toMatchObject({ outcome: 'not_admitted', isOwn: false });
    expect(result?.claims?.map(({ name }) => name)).toEqual(expect.arrayContaining(['sub', 'name', 'phone']));
    expect(result?.claims?.filter((claim) => 'value' in claim)).toEqual([]);
    expect(JSON.stringify(result)).not.toMatch(/canary/i);
    expect(server.logLines.join('')).not.toMatch(/canary/i);
  });

  test("begun in a session that is no person's shows no value either", async () => {
    const client = await server.createClient('acme', { scope: 'access.credential_manage' });
    const browser = new Browser(server, { publicUrl });
    await browser.signIn(client);
    const { test: result } = await tested(browser);
    expect(result).toMatchObject({ outcome: 'admitted', isOwn: false });
    expect(JSON.stringify(result)).not.toContain('u-admin');
    // Nor to another session of the same client.
    const other = new Browser(server, { publicUrl });
    await other.signIn(client);
    expect((await shownTo(other)).test).toBeUndefined();
  });

  test('is shown to the session that began it, in every process, for ten minutes, and replaced by the next', async () => {
    const { browser } = await people.signIn();
    const { browser: second } = await people.signIn();
    await tested(browser);
    expect((await shownTo(second)).test).toBeUndefined();
    const process = await startTestServer({ environment: people.environment, database: server.database });
    const there = new Browser(process, { publicUrl });
    there.cookie = browser.cookie;
    expect((await shownTo(there)).test).toMatchObject({ outcome: 'admitted' });
    await process.close();
    expect((await tested(browser, { sub: 'u-9' })).test).toMatchObject({ outcome: 'not_admitted' });
    passed = testLifetime - 10_000;
    expect((await shownTo(browser)).test).toBeDefined();
    passed = testLifetime + 1_000;
    expect((await shownTo(browser)).test).toBeUndefined();
  });

  test.each<[string, Record<string, unknown>, Wrong, string]>([
    ['groups that were left out', { hasgroups: true, sub: 'u-admin' }, {}, 'groups_left_out'],
    ['an answer that is refused', admin, { claims: { aud: 'other' } }, 'provider'],
  ])('says why there would be no sign-in: %s', async (_what, claims, wrong, outcome) => {
    const { browser } = await people.signIn();
    provider.wrong = wrong;
    expect((await tested(browser, claims)).test).toMatchObject({ outcome });
    expect(await sessions()).toBe(1);
  });

  test('that the person declined at the provider says so', async () => {
    const { browser } = await people.signIn();
    const { way, address } = await begin(browser);
    const callback = provider.signIn(address);
    callback.searchParams.delete('code');
    callback.searchParams.set('error', 'access_denied');
    await people.comeBack(way, callback);
    expect((await shownTo(browser)).test).toEqual({ at: expect.any(String), outcome: 'declined' });
  });

  test('shows as many claims, and as much of each, as its limits say', async () => {
    const { browser } = await people.signIn();
    const many = Object.fromEntries(Array.from({ length: testLimits.claims + 50 }, (_, n) => [`claim-${n}`, n]));
    const long = { ['n'.repeat(testLimits.name + 1)]: 'x'.repeat(testLimits.value) };
    const { test: result } = await tested(browser, { ...admin, ...long, ...many });
    expect(result?.claims).toHaveLength(testLimits.claims);
    const cut = result?.claims?.find(({ name }) => name.startsWith('nnn'));
    expect([cut?.name.length, cut?.value?.length]).toEqual([testLimits.name, testLimits.value]);
  });
});

describe('who may', () => {
  test('begin a test has access.credential_manage, and see the rules either scope', async () => {
    provider.claims = { sub: 'u-2', groups: ['viewers'] };
    const { browser: viewer } = await people.signIn();
    expect((await viewer.call(path)).status).toBe(200);
    expect((await viewer.post(path, {})).status).toBe(403);
    provider.claims = { sub: 'u-3', groups: ['part'] };
    const { browser: reader } = await people.signIn();
    expect([(await reader.call(path)).status, (await reader.post(path, {})).status]).toEqual([403, 403]);
    const nobody = new Browser(server, { publicUrl });
    expect([(await nobody.call(path)).status, (await nobody.post(path, {})).status]).toEqual([401, 401]);
    const token = await server.token('acme', { scope: 'access.credential_manage' });
    expect((await server.call('/session/sign-in', { token })).status).toBe(404);
  });

  test('no other site begins a test', async () => {
    const { browser } = await people.signIn();
    for (const headers of [
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: '', 'sec-fetch-site': '' },
    ]) {
      const answer = await browser.call(path, { method: 'POST', body: '{}', headers });
      expect(answer.status).toBe(403);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
    expect((await browser.post(path, { tenant: 'beta' })).status).toBe(400);
  });
});

describe('callbacks are not mixed up', () => {
  test('a test whose session signed out meanwhile makes none, and stores nothing', async () => {
    const { browser } = await people.signIn();
    const { way, address } = await begin(browser);
    await browser.signOut();
    await comeBack(way, address);
    expect(await sessions()).toBe(0);
  });

  test('a test and a sign-in of one browser under way at once end as they began, in either order', async () => {
    for (const isTestFirst of [true, false]) {
      const { browser } = await people.signIn();
      const before = await sessions();
      const { way, address } = await begin(browser);
      const other = await way.call('/console/oidc?to=history');
      const signIn = new URL(other.headers.get('location') ?? '');
      const finish = async (isTest: boolean) => {
        const cookie = way.cookie;
        const back = await comeBack(way, isTest ? address : signIn);
        const rest = back.cookies.find((text) => text.startsWith('__Host-annals-oidc'))?.split(';')[0];
        way.cookie = rest ?? cookie;
        return back;
      };
      const results = { test: '', signIn: '' };
      for (const isTest of isTestFirst ? [true, false] : [false, true]) {
        const { location, cookies } = await finish(isTest);
        const hasSession = cookies.some((cookie) => /^__Host-annals-(?!oidc)/.test(cookie));
        results[isTest ? 'test' : 'signIn'] = `${location} ${hasSession}`;
      }
      expect(results).toEqual({
        test: `${publicUrl}/console/security/sign-in false`,
        signIn: `${publicUrl}/console/history true`,
      });
      expect(await sessions()).toBe(before + 1);
      expect((await shownTo(browser)).test).toMatchObject({ outcome: 'admitted' });
    }
  });

  test('the callback of a test is good once, in the browser that began it, for ten minutes', async () => {
    const { browser } = await people.signIn();
    const { way, address } = await begin(browser);
    const cookie = way.cookie;
    provider.claims = admin;
    const callback = provider.signIn(address);
    const expired = `${publicUrl}/console/?refused=expired`;
    const stranger = new Browser(server, { publicUrl });
    expect((await people.comeBack(stranger, callback)).location).toBe(expired);
    const { cookies } = await people.comeBack(way, callback);
    expect(cookies).toEqual([expect.stringContaining('Max-Age=0')]);
    way.cookie = undefined;
    expect((await people.comeBack(way, callback)).location).toBe(expired);
    // Even with the cookie of before: the code was used.
    way.cookie = cookie;
    await people.comeBack(way, callback);
    expect((await shownTo(browser)).test).toMatchObject({ outcome: 'provider' });
    expect(await sessions()).toBe(1);

    const late = await begin(browser);
    passed = signInLifetime;
    expect((await comeBack(late.way, late.address)).location).toBe(expired);
  });

  test('a stranger who gets a victim to open the callback of a test learns nothing and signs in nobody', async () => {
    const { browser: attacker } = await people.signIn();
    const { address } = await begin(attacker);
    provider.claims = { sub: 'victim', groups: ['admins'] };
    const victim = new Browser(server, { publicUrl });
    const { location, cookies } = await people.comeBack(victim, provider.signIn(address));
    expect([location, cookies]).toEqual([`${publicUrl}/console/?refused=expired`, []]);
    expect((await shownTo(attacker)).test).toBeUndefined();
  });
});

describe('a refused sign-in', () => {
  test('is logged with issuer, subject, the names of the claims and the rules that were tried, and no value', async () => {
    provider.claims = {
      sub: 'u-refused',
      name: 'Canary Name',
      email: 'canary@partner.example',
      phone: 'canary-phone',
      groups: ['canary-group'],
    };
    const begun = server.logLines.length;
    await people.signIn();
    const lines = server.logLines.slice(begun).map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.find(({ msg }) => msg === 'a person was not signed in')).toMatchObject({
      reason: 'not_admitted',
      issuer: provider.issuer,
      subject: 'u-refused',
      claims: expect.arrayContaining(['sub', 'name', 'email', 'phone', 'groups']),
      rules: { 1: ['groups'], 2: ['groups'], 3: ['department'], 4: ['email', 'amr'], 5: ['groups'] },
    });
    expect(server.logLines.slice(begun).join('')).not.toMatch(/canary/i);
  });

  test.each<[string, Wrong]>([
    ['another audience', { claims: { aud: 'other' } }],
    ['another issuer', { claims: { iss: 'https://other.example' } }],
    ['another nonce', { claims: { nonce: 'other' } }],
    ['an ID token that expired', { claims: { exp: 1 } }],
    ['another key', { foreignKey: true }],
    ['no signature', { alg: 'none' }],
    ['the signature of a secret', { alg: 'HS256' }],
  ])('whose answer was refused because of %s logs no value of a claim', async (_what, wrong) => {
    provider.wrong = wrong;
    provider.claims = { ...admin, name: 'Canary Name', phone: 'canary-phone', sub: 'canary-sub' };
    const begun = server.logLines.length;
    expect((await people.signIn()).location).toBe(`${publicUrl}/console/?refused=provider`);
    const log = server.logLines.slice(begun).join('');
    expect(log).toContain('the answer of the OpenID provider was refused');
    expect(log).not.toMatch(/canary/i);
  });

  test('whom no existing tenant admits is logged with the tenants of the rules', async () => {
    const begun = server.logLines.length;
    await sql`update console_session set expires_at = statement_timestamp()`.execute(server.database.db);
    provider.claims = { sub: 'u-none', department: 'nowhere' };
    await people.signIn();
    expect(server.logLines.slice(begun).join('')).toContain('"subject":"u-none"');
  });

  test('names 100 claims at most, each with 100 characters', async () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`${n} `.padEnd(200, 'x'), n]));
    provider.claims = { sub: 'u-many', ...many };
    const begun = server.logLines.length;
    await people.signIn();
    const line = server.logLines.slice(begun).find((text) => text.includes('a person was not signed in')) ?? '{}';
    const { claims } = JSON.parse(line) as { claims: string[] };
    expect([claims.length, Math.max(...claims.map(({ length }) => length))]).toEqual([100, 100]);
  });
});

test('who signs in at the time of a test is signed in as before', async () => {
  const { browser } = await people.signIn('history');
  expect((await sessionOf(browser)).body).toMatchObject({
    name: 'Ada Admin',
    id: expect.stringMatching(/^[0-9a-f]{16}$/),
  });
});
