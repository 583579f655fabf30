import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { createClient, revokeClient } from '../../../src/access/oauth/clients.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Browser } from '../../support/server/browser.ts';
import { annals } from '../../support/server/command.ts';
import { linkFor } from '../../support/server/console-sessions.ts';
import { eventually } from '../../support/server/patience.ts';
import { PeopleServer, publicUrl, rulesOf } from '../../support/server/people.ts';
import { ConsentBrowser, TestProgram, type Tokens } from '../../support/server/program.ts';
import { routesOf } from '../../support/server/routes-of.ts';
import { testSecretKeys } from '../../support/server/server.ts';

const reading = 'changelog.changelog_read';
const service = closeAfterAll(
  await PeopleServer.start(
    rulesOf({ claims: { team: 'a' }, tenants: ['acme', 'beta'], scopes: [reading, 'access.credential_view'] }),
  ),
);
const { server, provider } = service;
const { db } = server.database;
for (const tenant of ['acme', 'beta']) await server.createTenant(tenant);
let people = 0;

beforeEach(() => {
  people += 1;
  provider.claims = { sub: `u-${people}`, name: `Jane ${people}`, team: 'a' };
  provider.givesRefreshTokens = true;
});

async function signedIn(): Promise<ConsentBrowser> {
  const { browser } = await service.signIn('?tenant=acme');
  expect(browser.cookie).toBeDefined();
  return new ConsentBrowser(browser);
}

async function byLink(tenant = 'acme'): Promise<ConsentBrowser> {
  const browser = new Browser(server, { publicUrl });
  expect((await browser.redeem((await linkFor(server, tenant)).fragment)).status).toBe(200);
  return new ConsentBrowser(browser);
}

/** Through the provider, where the person signs in for the program. */
async function throughProvider(browser: ConsentBrowser, location: string): Promise<string> {
  const begun = await browser.follow(location);
  expect(begun.status).toBe(302);
  const callback = provider.signIn(new URL(begun.headers.get('location') ?? ''));
  const back = await browser.follow(callback.href);
  expect(back.status).toBe(303);
  return back.headers.get('location') ?? '';
}

/** The person allows the program; the address to which they are sent back. */
async function allow(browser: ConsentBrowser, program: TestProgram, tenant = 'acme'): Promise<string> {
  const answer = await browser.follow(program.authorizeUrl(tenant));
  expect(answer.headers.get('location')).toBe(`${publicUrl}/console/authorize?tenant=${tenant}`);
  const { id, mayAllow } = await browser.shown();
  expect(mayAllow).toBe(true);
  const { status, location } = await browser.decide(id);
  expect(status).toBe(200);
  return location.startsWith(publicUrl) ? await throughProvider(browser, location) : location;
}

async function connect(browser: ConsentBrowser, program?: TestProgram): Promise<Tokens & { program: TestProgram }> {
  const asking = program ?? (await TestProgram.register(server, publicUrl));
  const { status, body } = await asking.redeem(await allow(browser, asking));
  expect(status).toBe(200);
  return { ...body, program: asking };
}

async function rows(): Promise<number> {
  const { rows: found } = await sql`select from access_grant`.execute(db);
  return found.length;
}

/** Of the person, newest first. */
async function accesses(kind: string, subject: string | null = `u-${people}`): Promise<Record<string, unknown>[]> {
  const { rows: found } = await sql<Record<string, unknown>>`
    select name, on_behalf_of as "onBehalfOf", subject, details from access_event
      where tenant = 'acme' and kind = ${kind} and subject is not distinct from ${subject} order by at desc`.execute(
    db,
  );
  return found;
}

describe('a program signs in with a person behind it', () => {
  test('it finds the way from /mcp, and reads with an opaque token of an hour', async () => {
    const refused = await fetch(`${server.baseUrl}/mcp/acme`, { method: 'POST' });
    expect(refused.status).toBe(401);
    const metadata = `${publicUrl}/.well-known/oauth-protected-resource/mcp/acme`;
    expect(refused.headers.get('www-authenticate')).toBe(`Bearer resource_metadata="${metadata}"`);
    const resource = await (await fetch(`${server.baseUrl}${new URL(metadata).pathname}`)).json();
    expect(resource).toMatchObject({ resource: `${publicUrl}/mcp/acme`, authorization_servers: [publicUrl] });
    const described = await fetch(`${server.baseUrl}/.well-known/oauth-authorization-server`);
    expect(await described.json()).toMatchObject({
      issuer: publicUrl,
      code_challenge_methods_supported: ['S256'],
      authorization_endpoint: `${publicUrl}/oauth/authorize`,
    });

    const { access_token: token, expires_in: lifetime, scope, program } = await connect(await signedIn());
    expect({ lifetime, scope }).toEqual({ lifetime: 3_600, scope: reading });
    expect(token).toMatch(/^annals_at_/);
    expect((await program.call(token, 'acme')).status).toBe(200);
  });

  test('metadata of a tenant that does not exist looks like that of one that does', async () => {
    const of = async (tenant: string) => {
      const answer = await fetch(`${server.baseUrl}/.well-known/oauth-protected-resource/mcp/${tenant}`);
      return [answer.status, (await answer.text()).replaceAll(tenant, 'T')];
    };
    expect(await of('nosuch')).toEqual(await of('acme'));
  });

  test('accesses name the program on behalf of the person', async () => {
    const { access_token: token, program } = await connect(await signedIn());
    const person = { name: 'Test program', onBehalfOf: `Jane ${people}`, subject: `u-${people}` };
    expect((await accesses('grant_made'))[0]).toEqual({ ...person, details: { redirect: '127.0.0.1' } });
    await program.call(token, 'acme');
    await server.context.countedReads.store();
    expect(await accesses('read')).toContainEqual({ ...person, details: { mcp: 1 } });
  });

  test('a person who declines is sent back with access_denied, and nothing is stored', async () => {
    const before = await rows();
    const program = await TestProgram.register(server, publicUrl);
    const browser = await signedIn();
    await browser.follow(program.authorizeUrl('acme'));
    const { location } = await browser.decide((await browser.shown()).id, false);
    const { searchParams } = new URL(location);
    expect(Object.fromEntries(searchParams)).toEqual({ error: 'access_denied', state: 'a state', iss: publicUrl });
    expect(await rows()).toBe(before);
    expect((await browser.call('/console/api/authorizations')).status).toBe(404);
  });
});

describe('the code', () => {
  test('is good once: its replay ends the grant', async () => {
    const browser = await signedIn();
    const program = await TestProgram.register(server, publicUrl);
    const location = await allow(browser, program);
    const { body } = await program.redeem(location);
    expect(await program.mayRead(body.access_token, 'acme')).toBe(true);
    expect((await program.redeem(location)).body.error).toBe('invalid_grant');
    await eventually(async () => expect(await program.mayRead(body.access_token, 'acme')).toBe(false));
    expect((await accesses('grant_ended'))[0]).toMatchObject({ details: { why: 'code' } });
  });

  test.each([
    ['another verifier', { code_verifier: 'x'.repeat(43) }],
    ['the challenge as verifier', { code_verifier: '' }],
    ['another redirect URI', { redirect_uri: 'http://127.0.0.1:1/callback' }],
    ['another program', { client_id: 'another' }],
  ])('is worth nothing with %s, and then to nobody', async (what, changes) => {
    const program = await TestProgram.register(server, publicUrl);
    const location = await allow(await byLink(), program);
    const sent = what === 'the challenge as verifier' ? { code_verifier: 'y'.repeat(43) } : changes;
    expect((await program.redeem(location, sent)).body.error).toBe('invalid_grant');
    expect((await program.redeem(location)).body.error).toBe('invalid_grant');
  });

  test('expires after a minute', async () => {
    const program = await TestProgram.register(server, publicUrl);
    const redeemAfter = async (seconds: number) => {
      const location = await allow(await byLink(), program);
      await sql`update access_grant set expires_at = expires_at - ${seconds} * interval '1 second'
        where redeemed_at is null`.execute(db);
      return (await program.redeem(location)).status;
    };
    expect(await redeemAfter(50)).toBe(200);
    expect(await redeemAfter(60)).toBe(400);
  });

  test('needs the verifier, and takes no secret', async () => {
    const program = await TestProgram.register(server, publicUrl);
    const location = await allow(await byLink(), program);
    expect((await program.redeem(location, { code_verifier: '' })).body.error).toBe('invalid_request');
    expect((await program.redeem(location, { client_secret: 'x' })).body.error).toBe('invalid_request');
    expect((await program.redeem(location, { resource: `${publicUrl}/mcp/beta` })).body.error).toBe('invalid_target');
    expect((await program.redeem(location, { scope: 'openid' })).body.error).toBe('invalid_scope');
    expect((await program.redeem(location)).status).toBe(200);
  });
});

describe('refresh tokens', () => {
  test('rotate; two windows that refresh at once share the successor', async () => {
    const { refresh_token: first, program } = await connect(await byLink());
    const both = await Promise.all([program.refresh(first), program.refresh(first)]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect(both[0]?.body.refresh_token).toBe(both[1]?.body.refresh_token);
    expect(both[0]?.body.refresh_token).not.toBe(first);
    for (const { body } of both) expect(await program.mayRead(body.access_token, 'acme')).toBe(true);
  });

  test('a replaced one gives the same successor for 60 s; after that its reuse ends the grant', async () => {
    const { refresh_token: first, access_token: token, program } = await connect(await byLink());
    const { body } = await program.refresh(first);
    const pass = (seconds: number) =>
      sql`update access_grant set rotated_at = rotated_at - ${seconds} * interval '1 second'`.execute(db);
    await pass(50);
    expect((await program.refresh(first)).body.refresh_token).toBe(body.refresh_token);
    await pass(10);
    expect((await program.refresh(first)).body.error).toBe('invalid_grant');
    expect((await program.refresh(body.refresh_token)).body.error).toBe('invalid_grant');
    await eventually(async () => expect(await program.mayRead(token, 'acme')).toBe(false));
    expect((await accesses('grant_ended', null))[0]).toMatchObject({ details: { why: 'reuse' } });
  });

  test('one of two generations before ends the grant at once', async () => {
    const { refresh_token: first, program } = await connect(await byLink());
    const { body: second } = await program.refresh(first);
    const { body: third } = await program.refresh(second.refresh_token);
    expect((await program.refresh(first)).body.error).toBe('invalid_grant');
    expect((await program.refresh(third.refresh_token)).body.error).toBe('invalid_grant');
  });

  test('a forged one ends no grant', async () => {
    const { refresh_token: first, program } = await connect(await byLink());
    const forged = `${first.slice(0, -43)}${'A'.repeat(43)}`;
    expect((await program.refresh(forged)).body.error).toBe('invalid_grant');
    expect((await program.refresh(first)).status).toBe(200);
  });

  test('a grant lasts 30 days, however often it is refreshed', async () => {
    const { refresh_token: first, program } = await connect(await signedIn());
    const { rows: ends } = await sql<{ days: number }>`
      select extract(epoch from expires_at - created_at)::float8 / 86400 as days from access_grant
        order by created_at desc limit 1`.execute(db);
    expect(ends[0]?.days).toBe(30);
    await sql`update access_grant set expires_at = statement_timestamp()`.execute(db);
    expect((await program.refresh(first)).body.error).toBe('invalid_grant');
  });
});

describe('an access token', () => {
  test('is for /mcp of its tenant alone', async () => {
    const { access_token: token, refresh_token: refresh, program } = await connect(await signedIn());
    const elsewhere = [
      await program.call(token, 'beta'),
      await program.call(refresh, 'acme'),
      await program.call(token, 'acme', '/openai/acme/v1/chat/completions'),
      await fetch(`${server.baseUrl}/changelog/acme/changelogs`, { headers: { authorization: `Bearer ${token}` } }),
    ];
    expect(elsewhere.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
    expect(elsewhere[0]?.headers.get('www-authenticate')).toMatch(/^Bearer error="invalid_token", resource_metadata=/);
  });

  test('is revoked with its grant, and an unknown one is no error', async () => {
    const { access_token: token, program } = await connect(await byLink());
    const revoke = async (text: string) =>
      (await fetch(`${server.baseUrl}/oauth/revoke`, { method: 'POST', body: new URLSearchParams({ token: text }) }))
        .status;
    expect(await revoke('annals_at_nothing')).toBe(200);
    expect(await program.mayRead(token, 'acme')).toBe(true);
    expect(await revoke(token)).toBe(200);
    await eventually(async () => expect(await program.mayRead(token, 'acme')).toBe(false));
  });
});

describe('a grant and the sessions of its person', () => {
  test('has a sign-in of its own, so that signing out ends it not', async () => {
    const browser = await signedIn();
    const { access_token: token, refresh_token: refresh, program } = await connect(browser);
    expect((await browser.call('/console/api/session', { method: 'DELETE' })).status).toBe(200);
    await service.check();
    expect((await program.refresh(refresh)).status).toBe(200);
    expect(await program.mayRead(token, 'acme')).toBe(true);
  });

  test.each(['a link', 'a provider without refresh tokens'])(
    'of %s ends with the session, signing out included',
    async (what) => {
      provider.givesRefreshTokens = what === 'a link';
      const browser = what === 'a link' ? await byLink() : await signedIn();
      const { access_token: token, refresh_token: refresh, program } = await connect(browser);
      expect(await program.mayRead(token, 'acme')).toBe(true);
      await browser.call('/console/api/session', { method: 'DELETE' });
      expect((await program.refresh(refresh)).body.error).toBe('invalid_grant');
      await eventually(async () => expect(await program.mayRead(token, 'acme')).toBe(false));
    },
  );

  test('a leaver loses it with the next check, and so does one whose rules changed', async () => {
    const { access_token: token, program } = await connect(await signedIn());
    provider.endedSubjects.add(`u-${people}`);
    await service.check();
    await eventually(async () => expect(await program.mayRead(token, 'acme')).toBe(false));
    expect((await accesses('grant_ended'))[0]).toMatchObject({ details: { why: 'provider' } });

    people += 1;
    provider.claims = { sub: `u-${people}`, name: `Jane ${people}`, team: 'a' };
    const other = await connect(await signedIn());
    provider.claims = { sub: `u-${people}`, name: `Jane ${people}`, team: 'gone' };
    await service.check();
    await eventually(async () => expect(await other.program.mayRead(other.access_token, 'acme')).toBe(false));
    expect((await accesses('grant_ended'))[0]).toMatchObject({ details: { why: 'rules' } });
  });

  test('is revoked with the client of its session', async () => {
    const client = await createClient(db, { tenant: 'acme', scope: reading });
    const browser = new Browser(server, { publicUrl });
    await browser.signIn(client);
    const { access_token: token, program } = await connect(new ConsentBrowser(browser));
    await revokeClient(db, client.clientId);
    await eventually(async () => expect(await program.mayRead(token, 'acme')).toBe(false));
  });

  test('nobody else signs in for it', async () => {
    const program = await TestProgram.register(server, publicUrl);
    const browser = await signedIn();
    await browser.follow(program.authorizeUrl('acme'));
    const { location } = await browser.decide((await browser.shown()).id);
    provider.claims = { sub: 'another', name: 'Eve', team: 'a' };
    const before = await rows();
    expect(await throughProvider(browser, location)).toBe(`${publicUrl}/console/authorize?refused=other_person`);
    expect(await rows()).toBe(before);
  });
});

describe('the request that a person decides on', () => {
  test('shows where the answer goes, and what the program calls itself', async () => {
    const program = await TestProgram.register(server, publicUrl, {
      name: 'Claude',
      redirectUri: 'https://claude.example:8443/callback?x=1',
    });
    const browser = await signedIn();
    await browser.follow(program.authorizeUrl('acme'));
    expect(await browser.shown()).toMatchObject({
      name: 'Claude',
      redirectHost: 'claude.example:8443',
      isLocal: false,
      tenant: 'acme',
      endsWithSession: false,
    });
    const location = new URL(await allow(browser, program));
    expect(location.href).toMatch(/^https:\/\/claude\.example:8443\/callback\?x=1&code=annals_ac_/);
    expect(location.searchParams.get('iss')).toBe(publicUrl);
  });

  test('another one in the cookie than the one shown is 409, and so is another session', async () => {
    const browser = await byLink();
    const harmless = await TestProgram.register(server, publicUrl);
    await browser.follow(harmless.authorizeUrl('acme'));
    const { id } = await browser.shown();
    const evil = await TestProgram.register(server, publicUrl, { redirectUri: 'https://evil.example/' });
    await browser.follow(evil.authorizeUrl('acme'));
    expect((await browser.decide(id)).status).toBe(409);
    expect((await browser.decide(id, false)).status).toBe(409);
  });

  test('without a resource the page names the tenant of the session; another one cannot be allowed', async () => {
    const program = await TestProgram.register(server, publicUrl);
    const browser = await byLink('beta');
    await browser.follow(program.authorizeUrl('acme', { resource: '' }));
    expect(await browser.shown()).toMatchObject({ tenant: 'beta', mayAllow: true });
    await browser.follow(program.authorizeUrl('acme'));
    const { id, tenant, mayAllow } = await browser.shown();
    expect({ tenant, mayAllow }).toEqual({ tenant: 'acme', mayAllow: false });
    expect((await browser.decide(id)).status).toBe(403);
  });

  test('is decided by a page of the console alone', async () => {
    const program = await TestProgram.register(server, publicUrl);
    const browser = await byLink();
    await browser.follow(program.authorizeUrl('acme'));
    const { id: request } = await browser.shown();
    const decide = (headers: Record<string, string>) =>
      browser.post('/console/api/authorizations', { request, allow: true }, headers);
    const foreign: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: '' },
      { 'sec-fetch-site': 'cross-site' },
    ];
    for (const headers of foreign) expect((await decide(headers)).status).toBe(403);
    expect((await decide({ 'content-type': 'text/plain' })).status).toBe(415);
    expect((await decide({})).status).toBe(200);
  });
});

describe('an authorization request that is not shown', () => {
  test.each<[string, Record<string, string>]>([
    ['program', { client_id: 'annals_program_x' }],
    ['program', { client_id: '' }],
    ['redirect', { redirect_uri: 'https://evil.example/' }],
    ['redirect', { redirect_uri: 'http://127.0.0.1:33418/callback/../x' }],
    ['redirect', { redirect_uri: 'http://127.0.0.1:33418@evil.example/callback' }],
    ['redirect', { redirect_uri: 'http://localhost:33418/callback' }],
    ['redirect', { redirect_uri: '' }],
    ['pkce', { code_challenge_method: 'plain' }],
    ['pkce', { code_challenge_method: '' }],
    ['pkce', { code_challenge: '' }],
    ['type', { response_type: 'token' }],
    ['type', { response_mode: 'fragment' }],
    ['scope', { scope: 'openid' }],
    ['scope', { scope: 'changelog.changelog_manage' }],
    ['resource', { resource: 'https://evil.example/mcp/acme' }],
    ['resource', { resource: `${publicUrl}/mcp/acme/x` }],
    ['length', { state: 'x'.repeat(1_025) }],
    ['parameters', { request_uri: 'https://evil.example/' }],
  ])('for its %s: %j', async (fault, parameters) => {
    const program = await TestProgram.register(server, publicUrl);
    const answer = await new ConsentBrowser(new Browser(server, { publicUrl })).follow(
      program.authorizeUrl('acme', parameters),
    );
    expect(answer.status).toBe(303);
    expect(answer.headers.get('location')).toBe(`${publicUrl}/console/authorize?fault=${fault}`);
    expect(answer.headers.getSetCookie()).toEqual([]);
  });

  test('the port of loopback is free, and the longest state is taken', async () => {
    const program = await TestProgram.register(server, publicUrl);
    const parameters = { redirect_uri: 'http://127.0.0.1:5/callback', state: 'x'.repeat(1_024) };
    const browser = new ConsentBrowser(new Browser(server, { publicUrl }));
    const answer = await browser.follow(program.authorizeUrl('acme', parameters));
    expect(answer.headers.get('location')).toBe(`${publicUrl}/console/authorize?tenant=acme`);
    expect(answer.headers.getSetCookie()).toHaveLength(1);
    expect(answer.headers.getSetCookie()[0]).toMatch(/^__Host-annals-request-.*; HttpOnly; SameSite=Lax; Secure$/);
  });

  test('a repeated parameter', async () => {
    const program = await TestProgram.register(server, publicUrl);
    const browser = new ConsentBrowser(new Browser(server, { publicUrl }));
    const twice = await browser.follow(`${program.authorizeUrl('acme')}&state=b`);
    expect(twice.headers.get('location')).toContain('fault=parameters');
    const resources = await browser.follow(`${program.authorizeUrl('acme')}&resource=x`);
    expect(resources.headers.get('location')).toContain('fault=resource');
  });

  test('prompt=none is login_required', async () => {
    const program = await TestProgram.register(server, publicUrl);
    const answer = await (await signedIn()).follow(program.authorizeUrl('acme', { prompt: 'none' }));
    expect(new URL(answer.headers.get('location') ?? '').searchParams.get('error')).toBe('login_required');
  });
});

describe('registrations', () => {
  const register = async (metadata: unknown) => {
    const answer = await fetch(`${server.baseUrl}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'https://inspector.example' },
      body: JSON.stringify(metadata),
    });
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };

  test('a flood of them stores nothing', async () => {
    // Counted row by row: statistics of the server come late, and other tables change by themselves.
    const size = async () => {
      const { rows: counts } = await sql`
        select (select count(*) from oauth_client) as clients, (select count(*) from access_grant) as grants,
               (select count(*) from console_session) as sessions, (select count(*) from access_key) as keys`.execute(
        db,
      );
      return counts;
    };
    const before = await size();
    for (let count = 0; count < 50; count += 1)
      expect((await register({ client_name: `P${count}`, redirect_uris: ['https://p.example/'] })).status).toBe(201);
    expect(await size()).toEqual(before);
  });

  test.each<[unknown, string]>([
    [{}, 'invalid_redirect_uri'],
    [[], 'invalid_client_metadata'],
    [{ redirect_uris: [] }, 'invalid_redirect_uri'],
    [{ redirect_uris: Array(5).fill('https://p.example/') }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['http://p.example/'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['http://127.0.0.1.evil.example/'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['javascript:alert(1)'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['data:text/html,x'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['evil://callback'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['https://good.example\\@evil.example/'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['https://good.example@evil.example/'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['https:evil.example/'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['https://p.example/#x'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['https://p.example/\u202e'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: [`https://p.example/${'x'.repeat(483)}`] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['https://p.example/'], client_name: 'x'.repeat(101) }, 'invalid_client_metadata'],
    [{ redirect_uris: ['https://p.example/'], client_name: '\u202eedualC' }, 'invalid_client_metadata'],
    [{ redirect_uris: Array(4).fill(`https://p.example/${'x'.repeat(300)}`) }, 'invalid_client_metadata'],
  ])('%j is %s', async (metadata, error) => {
    expect(await register(metadata)).toMatchObject({ status: 400, body: { error } });
  });

  test.each<[Record<string, unknown>]>([
    [{ redirect_uris: ['cursor://anysphere/callback', 'vscode://x/y', 'http://[::1]/cb', 'http://localhost:1/'] }],
    [{ redirect_uris: [`https://p.example/${'x'.repeat(482)}`], client_name: 'x'.repeat(100) }],
    [
      {
        redirect_uris: ['https://p.example/'],
        application_type: 'web',
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
  ])('%j is native and has no secret', async (metadata) => {
    const { status, body } = await register(metadata);
    expect(status).toBe(201);
    expect(body).toMatchObject({ token_endpoint_auth_method: 'none', application_type: 'native' });
    expect(body).not.toHaveProperty('client_secret');
  });
});

describe('grants are listed and ended', () => {
  interface Listed {
    readonly id: string;
    readonly name: string;
    readonly onBehalfOf: string;
  }
  const manager = async (scope: string, tenant = 'acme') => {
    const token = await server.token(tenant, { scope });
    return (path: string, method = 'GET') =>
      fetch(`${server.baseUrl}${path}`, { method, headers: { authorization: `Bearer ${token}` } });
  };
  const idOf = ({ access_token: token }: Tokens) => token.split('_')[3] ?? '';

  test('all of a tenant by who may see credentials, and ended by who may manage them', async () => {
    const tokens = await connect(await signedIn());
    const path = `/access/acme/grants/${idOf(tokens)}`;
    const view = await manager('access.credential_view');
    const items = (await (await view(`/access/acme/grants?q=subject:"u-${people}"`)).json()) as Listed[];
    expect(items).toMatchObject([
      { id: idOf(tokens), name: 'Test program', onBehalfOf: `Jane ${people}`, endsWithSession: false },
    ]);
    expect(await (await view(path)).json()).toEqual(items[0]);
    expect((await view(path, 'DELETE')).status).toBe(403);
    const others = await manager('access.credential_manage', 'beta');
    expect((await others(path)).status).toBe(403);
    expect((await others(path.replace('acme', 'beta'), 'DELETE')).status).toBe(404);
    const manage = await manager('access.credential_manage');
    expect((await manage(path, 'DELETE')).status).toBe(204);
    expect((await manage(path, 'DELETE')).status).toBe(404);
    expect((await view(path)).status).toBe(404);
    await eventually(async () => expect(await tokens.program.mayRead(tokens.access_token, 'acme')).toBe(false));
    const { details } = (await accesses('grant_ended'))[0] as { details: Record<string, string> };
    expect(Object.keys(details)).toEqual(['by', 'byClient']);
  });

  test('a person sees and ends their own alone', async () => {
    const browser = await signedIn();
    const tokens = await connect(browser);
    const stranger = await byLink();
    const own = async (of: ConsentBrowser) =>
      ((await (await of.call('/console/api/session/grants')).json()) as { grants: Listed[] }).grants.map(
        ({ id }) => id,
      );
    expect(await own(browser)).toEqual([idOf(tokens)]);
    expect(await own(stranger)).toEqual([]);
    const end = (of: ConsentBrowser) => of.call(`/console/api/session/grants/${idOf(tokens)}`, { method: 'DELETE' });
    expect((await end(stranger)).status).toBe(404);
    expect((await end(browser)).status).toBe(204);
    expect(await own(browser)).toEqual([]);
    // The sign-in that was made for it is gone as well.
    const { rows: kept } = await sql`
      select from console_session where subject = ${`u-${people}`} and for_keys`.execute(db);
    expect(kept).toHaveLength(0);
  });

  test('on the command line', async () => {
    const tokens = await connect(await signedIn());
    const environment = {
      DATABASE_URL: server.database.url,
      ANNALS_SECRET_KEY: testSecretKeys.map((key) => Buffer.from(key).toString('base64')).join(','),
      LOG_LEVEL: 'fatal',
    };
    const listed = await annals(['grant', 'list', '--tenant', 'acme'], environment);
    expect(JSON.parse(listed.stdout)).toContainEqual(expect.objectContaining({ id: idOf(tokens) }));
    const revoke = ['grant', 'revoke', '--tenant', 'acme', idOf(tokens)];
    expect(JSON.parse((await annals(revoke, environment)).stdout)).toMatchObject({ revoked: true });
    expect((await annals(revoke, environment)).stderr).toContain('there is no active grant');
    await eventually(async () => expect(await tokens.program.mayRead(tokens.access_token, 'acme')).toBe(false));
  });

  test('a person has 50; a new one ends the oldest', async () => {
    const browser = await byLink();
    const program = await TestProgram.register(server, publicUrl);
    const first = await connect(browser, program);
    for (let count = 0; count < 49; count += 1) await allow(browser, program);
    expect((await program.refresh(first.refresh_token)).status).toBe(200);
    await allow(browser, program);
    expect((await program.refresh(first.refresh_token)).body.error).toBe('invalid_grant');
  });
});

test('the authorization server has these routes and no others', () => {
  const routes = routesOf(server.app).map(({ method, path }) => `${method} ${path}`);
  expect(routes.filter((route) => /oauth|authoriz/.test(route)).sort()).toEqual([
    'GET /.well-known/oauth-authorization-server',
    'GET /.well-known/oauth-protected-resource/mcp/:name',
    'GET /console/api/authorizations',
    'GET /oauth/authorize',
    'HEAD /.well-known/oauth-authorization-server',
    'HEAD /.well-known/oauth-protected-resource/mcp/:name',
    'HEAD /console/api/authorizations',
    'POST /console/api/authorizations',
    'POST /oauth/register',
    'POST /oauth/revoke',
    'POST /oauth/token',
  ]);
});
