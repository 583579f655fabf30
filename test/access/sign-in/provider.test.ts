import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  createIdentityProvider,
  filledClaims,
  type IdentityProvider,
  keysLifetime,
} from '../../../src/access/sign-in/provider.ts';
import { readRules } from '../../../src/access/sign-in/rules.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { rulesOf } from '../../support/server/people.ts';
import { startScript } from '../../support/server/script.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { TestIdentityProvider } from '../../support/vendor/identity-provider.ts';

/** A clock that stands still. */
const start = Date.now();
let now = start;

const vendor = await TestIdentityProvider.start();

afterAll(async () => {
  await vendor.stop();
});

beforeEach(() => {
  now = start;
  vendor.claims = { sub: 'u-1' };
  vendor.userInfo = undefined;
  vendor.userInfoFailures = 0;
  vendor.keyFailures = 0;
  vendor.cutRenewals = 0;
  vendor.reusesRefreshTokens = false;
  vendor.isAway = false;
  vendor.wrong = {};
  vendor.scopes = undefined;
});

function newProvider({
  scopes = [] as string[],
  claims = { groups: 'auditors' } as object,
  trustEmail = false,
} = {}): IdentityProvider {
  const rules = readRules(
    rulesOf({ claims, tenants: ['acme'], scopes: ['changelog.changelog_read'], trustEmail }),
    readRestriction,
  );
  return createIdentityProvider({
    issuer: vendor.issuer,
    clientId: vendor.clientId,
    clientSecret: vendor.clientSecret,
    scopes,
    lacksClaims: (has) => rules.lacksClaims(has),
    callback: 'https://annals.example/console/oidc/callback',
    afterSignOut: 'https://annals.example/console/',
    now: () => now,
  });
}

async function signIn(provider: IdentityProvider) {
  const { url, checks } = await provider.begin();
  const person = await provider.finish(vendor.signIn(url), checks);
  if (typeof person !== 'object') throw new Error(`nobody was signed in: ${person}`);
  return person;
}

test('keys that the provider replaced without notice are read again, at most every ten seconds', async () => {
  const provider = newProvider();
  await signIn(provider);
  await vendor.rotateKeys();
  const reads = vendor.keyReads;
  now = start + keysLifetime - 1;
  await expect(signIn(provider)).rejects.toThrow();
  expect(vendor.keyReads).toBe(reads);
  now = start + keysLifetime;
  await signIn(provider);
  await signIn(provider);
  expect(vendor.keyReads).toBe(reads + 1);
  expect(keysLifetime).toBe(10_000);
});

test('a provider that cannot be reached is asked again after a second, and not for each sign-in and token', async () => {
  const provider = newProvider();
  vendor.isAway = true;
  const reads = vendor.descriptionReads;
  const token = await vendor.logoutToken({ sid: 's-1' });
  for (let n = 0; n < 10; n += 1) {
    await expect(provider.begin()).rejects.toThrow();
    await expect(provider.readLogout(token)).rejects.toThrow();
  }
  expect(vendor.descriptionReads).toBe(reads + 1);
  vendor.isAway = false;
  now = start + 999;
  await expect(provider.begin()).rejects.toThrow();
  now = start + 1_000;
  await signIn(provider);
  expect(await provider.readLogout(token)).toMatchObject({ sid: 's-1' });
  expect(vendor.descriptionReads).toBe(reads + 2);
});

describe('a renewal that fails', () => {
  const signInAndFail = async (fail: () => unknown) => {
    const provider = newProvider();
    const { refreshToken = '' } = await signIn(provider);
    // The description and the keys are read again.
    now = start + keysLifetime;
    await fail();
    const replaced: string[] = [];
    await expect(provider.renew(refreshToken, 'u-1', (token) => replaced.push(token))).rejects.toThrow();
    vendor.isAway = false;
    vendor.wrong = {};
    now += keysLifetime;
    return { provider, refreshToken, replaced };
  };

  test.each<[string, () => unknown]>([
    ["the keys' endpoint fails", () => (vendor.keyFailures = 1)],
    ['the ID token is signed with another key', () => (vendor.wrong = { foreignKey: true })],
    ['the ID token has expired', () => (vendor.wrong = { claims: { exp: Math.floor(start / 1_000) - 600 } })],
    ['the ID token is for another client', () => (vendor.wrong = { claims: { aud: 'another' } })],
    [
      'the key is unknown',
      async () => {
        // The keys of the sign-in are too young to be read again.
        now = start;
        await vendor.rotateKeys();
      },
    ],
  ])('after the refresh token was spent, because %s, reports the one that replaced it', async (_what, fail) => {
    const { provider, refreshToken, replaced } = await signInAndFail(fail);
    expect(replaced).toEqual([expect.any(String)]);
    expect(await provider.renew(refreshToken, 'u-1')).toBeUndefined();
    expect(await provider.renew(replaced[0] ?? '', 'u-1')).toMatchObject({ subject: 'u-1' });
  });

  test('before the refresh token was spent reports none, and the token stays valid', async () => {
    const { provider, refreshToken, replaced } = await signInAndFail(() => (vendor.isAway = true));
    expect(replaced).toEqual([]);
    expect(await provider.renew(refreshToken, 'u-1')).toMatchObject({ subject: 'u-1' });
  });

  test('because the answer was cut reports none: the token renews where the provider has a grace period', async () => {
    vendor.reusesRefreshTokens = true;
    const { provider, refreshToken, replaced } = await signInAndFail(() => (vendor.cutRenewals = 1));
    expect(replaced).toEqual([]);
    expect(await provider.renew(refreshToken, 'u-1')).toMatchObject({ subject: 'u-1' });
  });

  test('reports to each of several at once its own', async () => {
    const provider = newProvider();
    const subjects = ['u-1', 'u-2', 'u-3'];
    const before = [];
    for (const sub of subjects) {
      vendor.claims = { sub };
      before.push((await signIn(provider)).refreshToken ?? '');
    }
    now = start + keysLifetime;
    vendor.keyFailures = subjects.length;
    const replaced: string[] = [];
    const outcomes = await Promise.allSettled(
      before.map((token, at) => provider.renew(token, subjects[at] ?? '', (next) => (replaced[at] = next))),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(subjects.map(() => 'rejected'));
    vendor.keyFailures = 0;
    for (const [at, subject] of subjects.entries())
      expect(await provider.renew(replaced[at] ?? '', subject)).toMatchObject({ subject });
  });
});

describe('scopes', () => {
  const scopesOf = async (provider: IdentityProvider) => (await provider.begin()).url.searchParams.get('scope');

  test('offline_access is not requested of a provider that lists its scopes without it, unless the setting names it', async () => {
    expect(await scopesOf(newProvider())).toBe('openid profile email offline_access');
    vendor.scopes = ['openid', 'profile'];
    expect(await scopesOf(newProvider())).toBe('openid profile email');
    expect(await scopesOf(newProvider({ scopes: ['offline_access'] }))).toBe('openid profile email offline_access');
  });

  test('the setting adds scopes, each once', async () => {
    expect(await scopesOf(newProvider({ scopes: ['groups', 'email'] }))).toBe(
      'openid profile email offline_access groups',
    );
  });
});

describe('userinfo', () => {
  test('it gives the claims that the ID token lacks, at the sign-in and at each renewal', async () => {
    vendor.claims = { sub: 'u-1', name: 'Of the token' };
    vendor.userInfo = { groups: ['auditors'], name: 'Of userinfo' };
    const provider = newProvider();
    const person = await signIn(provider);
    expect(person.claims).toMatchObject({ name: 'Of the token', groups: ['auditors'] });
    vendor.userInfo = { groups: [] };
    const renewed = await provider.renew(person.refreshToken ?? '', 'u-1');
    expect(renewed?.claims).toMatchObject({ name: 'Of the token', groups: [] });
  });

  test('that of another person is refused', async () => {
    vendor.userInfo = { sub: 'u-2', groups: ['auditors'] };
    await expect(signIn(newProvider())).rejects.toThrow();
  });

  test.each<[string, { claims: object; trustEmail?: boolean }, object, boolean]>([
    ['the name alone is missing', { claims: { groups: 'auditors' } }, { groups: ['auditors'] }, true],
    ['a claim of a rule is missing', { claims: { groups: 'auditors' } }, { name: 'Jane' }, false],
    ['a claim that a pointer names is missing', { claims: { '/realm/roles': 'a' } }, { name: 'Jane' }, false],
    ['every rule trusts the address', { claims: { email: 'a' }, trustEmail: true }, { email: 'a' }, true],
    ['a rule needs the address verified', { claims: { email: 'a' } }, { email: 'a', name: 'Jane' }, false],
    ['the address is verified', { claims: { email: 'a' } }, { email: 'a', email_verified: true }, true],
  ])(
    'when it fails and %s, the ID token counts only if it has what rules need',
    async (_what, rule, claims, counts) => {
      vendor.claims = { sub: 'u-1', ...claims };
      vendor.userInfo = {};
      const provider = newProvider(rule);
      const { refreshToken = '' } = await signIn(provider);
      vendor.userInfoFailures = 2;
      const outcomes = await Promise.allSettled([signIn(provider), provider.renew(refreshToken, 'u-1')]);
      expect(outcomes).toMatchObject(
        outcomes.map(() =>
          counts
            ? { status: 'fulfilled', value: { claims, refreshToken: expect.any(String) } }
            : { status: 'rejected' },
        ),
      );
      expect(vendor.userInfoFailures).toBe(0);
    },
  );

  test('a renewal of another person is refused, and reports no refresh token', async () => {
    const provider = newProvider();
    const { refreshToken = '' } = await signIn(provider);
    const replaced: string[] = [];
    await expect(provider.renew(refreshToken, 'u-2', (token) => replaced.push(token))).rejects.toThrow('another');
    expect(replaced).toEqual([]);
  });

  test('it is not requested where the ID token has all claims of the rules, nor where there is no endpoint', async () => {
    // It would be refused.
    vendor.userInfo = { sub: 'u-2' };
    vendor.claims = { sub: 'u-1', name: 'Jane', groups: [] };
    expect((await signIn(newProvider())).claims.groups).toEqual([]);
    vendor.userInfo = undefined;
    vendor.claims = { sub: 'u-1' };
    expect((await signIn(newProvider())).claims.groups).toBeUndefined();
  });

  test.each<[string, object, object, object]>([
    [
      'an address of userinfo with its verification',
      {},
      { email: 'a', email_verified: true },
      { email: 'a', email_verified: true },
    ],
    [
      'a verification of the same address',
      { email: 'a' },
      { email: 'a', email_verified: true },
      { email: 'a', email_verified: true },
    ],
    ['not that of another one', { email: 'a' }, { email: 'b', email_verified: true }, { email: 'a' }],
    [
      'nor over what the ID token says',
      { email: 'a', email_verified: false },
      { email: 'a', email_verified: true },
      { email: 'a', email_verified: false },
    ],
    ['nor that of the ID token for another address', { email_verified: true }, { email: 'b' }, { email: 'b' }],
  ])('an address and its verification stay together: %s', (_what, signed, more, filled) => {
    expect(filledClaims(signed as never, more as never)).toEqual(filled);
  });
});

test("a provider behind a company's own authority: the error names NODE_EXTRA_CA_CERTS, and with it the provider is reached", async () => {
  const folder = temporaryFolder();
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const files = ['-keyout', key, '-out', cert];
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  execFileSync('openssl', ['req', '-x509', ...ec, '-nodes', '-days', '2', ...subject, ...files], { stdio: 'ignore' });
  const secure = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) => {
    const issuer = `https://localhost:${(secure.address() as AddressInfo).port}`;
    const description = { issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(description));
  });
  secure.listen(0, 'localhost');
  await once(secure, 'listening');
  onTestFinished(() => void secure.close());
  const issuer = `https://localhost:${(secure.address() as AddressInfo).port}`;
  const begin = async (authority: object) => {
    const child = startScript('begin-sign-in.ts', [issuer], ['ignore', 'pipe', 'inherit'], authority);
    return await text(child.stdout as Readable);
  };
  expect(await begin({})).toMatch(/DEPTH_ZERO_SELF_SIGNED_CERT.*NODE_EXTRA_CA_CERTS/);
  expect(await begin({ NODE_EXTRA_CA_CERTS: cert })).toContain(`${issuer}/authorize?`);
});

test('groups that were left out for their number are recognised where a pointer names them', () => {
  const rules = readRules(
    rulesOf({ claims: { '/groups': 'auditors' }, tenants: ['acme'], scopes: ['changelog.changelog_read'] }),
    readRestriction,
  );
  expect(rules.lacksGroups({ hasgroups: true })).toBe(true);
  expect(rules.lacksGroups({})).toBe(false);
});
