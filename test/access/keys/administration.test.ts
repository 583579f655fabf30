import { writeFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { maxCredentials, maxLifetimeOfPerson, maxMakers, maxParts } from '../../../src/access/keys/administration.ts';
import { revokeClient } from '../../../src/access/oauth/clients.ts';
import { maxUnconfirmed } from '../../../src/access/oauth/makers.ts';
import { makeConsoleLink } from '../../../src/cli/console-link.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import type { Scope } from '../../../src/http/scopes.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Browser } from '../../support/server/browser.ts';
import { annals } from '../../support/server/command.ts';
import { type Call, endOfJob, startExport } from '../../support/server/jobs.ts';
import { eventually } from '../../support/server/patience.ts';
import { PeopleServer, publicUrl, rulesOf } from '../../support/server/people.ts';
import { testSecretKeys } from '../../support/server/server.ts';
import { statementsWaiting } from '../../support/server/statements-waiting.ts';

/** Milliseconds by which the monotonic clock is ahead: cached states of credentials are older. */
let waited = 0;
const afterFiveSeconds = () => {
  waited += 5_001;
};

const administrator: readonly Scope[] = [
  'access.credential_view',
  'access.credential_manage',
  'changelog.changelog_read',
  'changelog.viewer_issue',
  'ai.completion_manage',
  'configuration.configuration_manage',
];
const admits = rulesOf({ claims: { groups: 'all' }, tenants: ['acme'], scopes: administrator });
const people = closeAfterAll(
  await PeopleServer.start(admits, { now: () => Date.now(), elapsed: () => performance.now() + waited }),
);
const { server } = people;
for (const tenant of ['acme', 'beta']) await server.createTenant(tenant);
const jane = { sub: 'u-1', name: 'Jane Doe', groups: ['all'] };
people.provider.claims = jane;

const read = ['changelog.changelog_read'];
const manager = await server.createClient('acme', { scope: administrator.join(' '), name: 'Manager' });
const token = await server.tokenOf(manager);

interface Answered {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of all operations.
  body: any;
  headers: Headers;
}

async function send(path: string, method: string, json?: unknown, by = token, tenant = 'acme'): Promise<Answered> {
  const init = json === undefined ? {} : { json };
  const response = await server.call(`/access/${tenant}${path}`, { token: by, ...init, method });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers };
}
const make = (kind: 'clients' | 'keys', json: object, by = token) => send(`/${kind}`, 'POST', json, by);
const find = async (kind: 'clients' | 'keys', id: string) => (await send(`/${kind}/${id}`, 'GET')).body;

async function tokenStatus({ id, clientSecret }: { id: string; clientSecret: string }): Promise<number> {
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: id, client_secret: clientSecret });
  return (await server.call('/oauth/token', { method: 'POST', body })).status;
}
const tokenOf = ({ id, clientSecret }: { id: string; clientSecret: string }) =>
  server.tokenOf({ clientId: id, clientSecret, tenant: 'acme', scope: '', name: '' });
const historyStatus = async (by: string) => (await server.call('/changelog/acme/changelogs', { token: by })).status;
async function keyStatus(key: string): Promise<number> {
  const response = await fetch(`${server.baseUrl}/mcp/acme`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'x-forwarded-for': '203.0.113.7',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  });
  await response.body?.cancel();
  return response.status;
}

describe('rights', () => {
  test.each(['clients', 'keys'])('%s: to view needs either scope, to write the managing one', async (kind) => {
    const viewer = await server.token('acme', { scope: 'access.credential_view' });
    const only = await server.token('acme', { scope: 'access.credential_manage' });
    const other = await server.token('acme', {
      scope: 'changelog.changelog_manage changelog.access_read configuration.configuration_manage',
    });
    const writes = [
      [`/${kind}`, 'POST', { scopes: read }],
      [`/${kind}/x`, 'PATCH', { scopes: read }],
      [`/${kind}/x/rotate`, 'POST', undefined],
      [`/${kind}/x`, 'DELETE', undefined],
    ] as const;
    for (const by of [viewer, only]) expect((await send(`/${kind}`, 'GET', undefined, by)).status).toBe(200);
    expect((await send(`/${kind}`, 'GET', undefined, other)).status).toBe(403);
    for (const [path, method, json] of writes) {
      for (const by of [viewer, other]) expect((await send(path, method, json, by)).status, method).toBe(403);
      expect((await send(path, method, json, only)).status, method).toBe(
        method === 'POST' && path === `/${kind}` ? 403 : 404,
      );
    }
  });

  test('restricted credentials cannot have the scopes, however they are made', async () => {
    for (const scope of ['access.credential_view', 'access.credential_manage']) {
      await expect(
        server.createClient('acme', { scope, restriction: readRestriction([{ query: 'entity:a', hide: [] }]) }),
      ).rejects.toMatchObject({ type: 'validation_violation' });
      expect(await make('clients', { scopes: [scope], query: 'entity:a' })).toMatchObject({
        status: 400,
        body: { details: [{ field: 'scopes', message: expect.stringContaining(scope) }] },
      });
      expect((await make('keys', { scopes: [scope] })).status).toBe(400);
    }
    // Even if a row had both, the routes refuse it.
    const client = await server.createClient('acme', { scope: administrator.join(' ') });
    await server.database.pool.query(
      `update oauth_client set restriction = '[{"query": "entity:a", "hide": []}]' where client_id = $1`,
      [client.clientId],
    );
    const restricted = await server.tokenOf(client);
    for (const path of ['/clients', '/keys']) {
      expect((await send(path, 'GET', undefined, restricted)).status).toBe(403);
      expect((await send(path, 'POST', { scopes: read }, restricted)).status).toBe(403);
    }
  });

  test('a key or a viewer token administers nothing', async () => {
    const { body } = await make('keys', { scopes: read });
    expect((await send('/clients', 'GET', undefined, body.key)).status).toBe(401);
    const viewer = await server.viewerToken('acme');
    expect((await send('/keys', 'POST', { scopes: read }, viewer)).status).toBe(401);
  });
});

describe('making', () => {
  test('shows the secret once, without being stored by caches, and never again', async () => {
    const client = await make('clients', { name: 'Billing', scopes: read, query: 'entity:invoice', hide: ['iban'] });
    expect(client).toMatchObject({
      status: 201,
      body: {
        name: 'Billing',
        scopes: read,
        restriction: [{ query: 'entity:invoice', hide: ['iban'] }],
        madeBy: { client: manager.clientId, name: 'Manager' },
        state: 'active',
      },
    });
    expect(client.headers.get('cache-control')).toBe('no-store');
    expect(client.headers.get('location')).toBe(`/access/acme/clients/${client.body.id}`);
    expect(await tokenStatus(client.body)).toBe(200);
    const key = await make('keys', { scopes: read, rate: 100, actors: 'all', expiresIn: 3_600 });
    expect(key).toMatchObject({
      status: 201,
      body: { rate: 100, restriction: [{ query: '', hide: [], actors: 'all' }] },
    });
    expect(key.headers.get('cache-control')).toBe('no-store');
    expect(Date.parse(key.body.expiresAt) - Date.parse(key.body.createdAt)).toBe(3_600_000);
    expect(await keyStatus(key.body.key)).toBe(200);
    const { clientSecret } = client.body;
    const secret = key.body.key.slice(-49);
    const shown = [
      JSON.stringify((await send('/clients?pageSize=500', 'GET')).body),
      JSON.stringify((await send('/keys?pageSize=500', 'GET')).body),
      JSON.stringify(await find('clients', client.body.id)),
      server.logLines.join('\n'),
    ];
    const { rows } = await sql<{ row: string }>`
      select e::text as row from access_event e union all select e::text from change_entry e
      union all select c::text from oauth_client c union all select k::text from access_key k`.execute(
      server.database.db,
    );
    for (const text of [...shown, ...rows.map(({ row }) => row)]) {
      expect(text).not.toContain(clientSecret);
      expect(text).not.toContain(secret);
    }
    expect(shown.join()).not.toMatch(/hash/i);
  });

  test('gives no scope that the maker lacks, be it of the token alone', async () => {
    const beyond = {
      status: 403,
      body: { details: [{ field: 'scopes', message: expect.stringContaining('not have') }] },
    };
    expect(await make('clients', { scopes: ['usage.usage_read'] })).toMatchObject(beyond);
    const narrow = await server.tokenOf(manager, 'access.credential_manage');
    for (const kind of ['clients', 'keys'] as const)
      expect(await make(kind, { scopes: read }, narrow)).toMatchObject(beyond);
    expect((await make('clients', { scopes: ['access.credential_manage'] }, narrow)).status).toBe(201);
  });

  test.each([
    ['clients', {}, 'scopes'],
    ['clients', { scopes: [] }, 'scopes'],
    ['clients', { scopes: ['access.*'] }, 'scopes.0'],
    ['clients', { scopes: read, rate: 1 }, 'rate'],
    ['clients', { scopes: read, restriction: [] }, 'restriction'],
    ['clients', { scopes: read, query: 'entity:(' }, 'query'],
    ['clients', { scopes: read, query: 'name:/a.*/' }, 'query'],
    ['clients', { scopes: read, hide: [''] }, 'hide.0'],
    ['clients', { scopes: read, expiresIn: 59 }, 'expiresIn'],
    ['clients', { scopes: read, name: 'system' }, 'name'],
    ['keys', { scopes: ['changelog.viewer_issue'] }, 'scopes.0'],
    ['keys', { scopes: read, models: ['openai/gpt-5'] }, 'models'],
    ['keys', { scopes: ['ai.completion_manage'], query: 'entity:a' }, 'scopes'],
    ['keys', { scopes: read, rate: 0 }, 'rate'],
    ['keys', { scopes: read, user: 'jane' }, 'user'],
    ['keys', { scopes: ['ai.completion_manage'], user: '*' }, 'user'],
    ['keys', { scopes: ['ai.completion_manage'], user: 'u'.repeat(201) }, 'user'],
    ['clients', { scopes: ['ai.completion_manage'], user: 'jane' }, 'user'],
  ] as const)('%s: %j is 400 and names %s', async (kind, json, field) => {
    expect(await make(kind, json)).toMatchObject({ status: 400, body: { details: [{ field }] } });
  });

  test('a name in use by a client, a key, or a person is 409; that of an ended one is free', async () => {
    const { body } = await make('clients', { name: 'Taken', scopes: read });
    people.provider.claims = { sub: 'u-9', name: 'Gone Person', groups: ['all'] };
    const { browser } = await people.signIn();
    people.provider.claims = jane;
    const wrote = await browser.post('/console/api/configuration/acme/configurations', [{ key: 'k', value: 1 }]);
    expect(wrote.status).toBe(201);
    await browser.signOut();
    await make('keys', { name: 'Taken key', scopes: read });
    for (const kind of ['clients', 'keys'] as const) {
      for (const name of ['Taken', 'Taken key', 'Gone Person', 'Manager'])
        expect(await make(kind, { name, scopes: read })).toMatchObject({
          status: 409,
          body: { details: [{ field: 'name' }] },
        });
    }
    expect((await send(`/clients/${body.id}`, 'DELETE')).status).toBe(204);
    expect((await make('keys', { name: 'Taken', scopes: read })).status).toBe(201);
  });

  test.each([
    'Look alike ',
    '\u00a0Look alike',
    'Look\u3000alike',
    'Look  alike',
    'Look\u200b alike',
    'L\u00adook alike',
    'Look alike\ufe0f',
    'Look alike\u{e0041}',
    'Look alike\u3164',
  ])('%j looks like a name in use, so it is 409', async (name) => {
    if ((await send('/clients?q=name:"Look%20alike"', 'GET')).body.length === 0)
      await make('clients', { name: 'Look alike', scopes: read });
    expect((await make('keys', { name, scopes: read })).status).toBe(409);
  });

  test('names that look different are free, composed ones are alike', async () => {
    for (const name of ['look alike', 'Lookalike', 'Caf\u00e9']) {
      expect((await make('clients', { name, scopes: read })).status).toBe(201);
    }
    expect((await make('clients', { name: 'Cafe\u0301', scopes: read })).status).toBe(409);
    for (const name of ['\u200b', '\u3164 ', 'system\u200b', ' external']) {
      expect(await make('clients', { name, scopes: read })).toMatchObject({
        status: 400,
        body: { details: [{ field: 'name' }] },
      });
    }
  });

  test('of two at once with one name, one is 409', async () => {
    const made = await Promise.all([1, 2].map(() => make('clients', { name: 'Twice', scopes: read })));
    expect(made.map(({ status }) => status).sort()).toEqual([201, 409]);
  });

  test.each(['clients', 'keys'] as const)('a tenant has at most 1,000 active %s', async (kind) => {
    const tenant = `full${kind}`;
    const by = await server.token(tenant, { scope: administrator.join(' ') });
    const inserted = {
      clients: `insert into oauth_client (tenant, client_id, name, scopes, secret_hash)
        select $1, 'c' || n, 'c' || n, '{}', '' from generate_series(3, $2::integer) n`,
      keys: `insert into access_key (tenant, key_id, name, scopes, secret_hash)
        select $1, 'k' || n, 'k' || n, '{}', '' from generate_series(2, $2::integer) n`,
    };
    await server.database.pool.query(inserted[kind], [tenant, maxCredentials]);
    expect((await send(`/${kind}`, 'POST', { scopes: read }, by, tenant)).status).toBe(201);
    const full = await send(`/${kind}`, 'POST', { scopes: read }, by, tenant);
    expect(full).toMatchObject({ status: 409, body: { message: expect.stringContaining('1000') } });
    const [first] = (await send(`/${kind}?pageSize=1&sort=_id:ASC`, 'GET', undefined, by, tenant)).body;
    const last = kind === 'keys' ? 'k2' : 'c3';
    expect(first).toBeDefined();
    expect((await send(`/${kind}/${last}`, 'DELETE', undefined, by, tenant)).status).toBe(204);
    expect((await send(`/${kind}`, 'POST', { scopes: read }, by, tenant)).status).toBe(201);
  });

  test('a client that was made through five others makes no more', async () => {
    let by = token;
    const scopes = ['access.credential_manage', ...read];
    for (let depth = 1; depth <= maxMakers; depth += 1) {
      const { status, body } = await make('clients', { scopes }, by);
      expect(status).toBe(201);
      by = await tokenOf(body);
    }
    expect((await make('clients', { scopes: read }, by)).status).toBe(403);
    expect((await make('keys', { scopes: read }, by)).status).toBe(403);
  });

  test('what it makes expires no later than its maker', async () => {
    const { body: maker } = await make('clients', { scopes: ['access.credential_manage', ...read], expiresIn: 3_600 });
    const by = await tokenOf(maker);
    const { body } = await make('keys', { scopes: read }, by);
    expect(body.expiresAt).toBe(maker.expiresAt);
    expect((await make('clients', { scopes: read, expiresIn: 3_000 }, by)).status).toBe(201);
    expect(await make('clients', { scopes: read, expiresIn: 3_601 }, by)).toMatchObject({
      status: 400,
      body: { details: [{ field: 'expiresIn' }] },
    });
  });
});

describe('the end of a maker', () => {
  test('ends within 5 seconds what it made, and what that made: tokens, keys, viewer tokens', async () => {
    const scopes = ['access.credential_manage', 'changelog.viewer_issue', ...read];
    const { body: first } = await make('clients', { scopes });
    const { body: second } = await make('clients', { scopes }, await tokenOf(first));
    const { body: key } = await make('keys', { scopes: read }, await tokenOf(second));
    const history = await tokenOf(second);
    const viewer = await server.viewerToken('acme', { token: history });
    const viewerStatus = async () => (await server.call('/viewer/acme/changes', { token: viewer })).status;
    expect([await historyStatus(history), await keyStatus(key.key), await viewerStatus()]).toEqual([200, 200, 200]);
    expect((await send(`/clients/${first.id}`, 'DELETE')).status).toBe(204);
    afterFiveSeconds();
    expect([await historyStatus(history), await keyStatus(key.key), await viewerStatus()]).toEqual([401, 401, 401]);
    expect(await tokenStatus(second)).toBe(401);
    expect(await find('clients', first.id)).toMatchObject({ state: 'revoked', revokedAt: expect.any(String) });
    expect(await find('clients', second.id)).toMatchObject({ state: 'ended' });
    expect(await find('keys', key.id)).toMatchObject({ state: 'ended' });
    // Nothing brings it back.
    expect((await send(`/clients/${second.id}/rotate`, 'POST')).status).toBe(409);
    expect((await send(`/keys/${key.id}`, 'PATCH', { rate: 1 })).status).toBe(409);
  });

  test('by its expiry ends what it made, whatever that has', async () => {
    const { body: maker } = await make('clients', { scopes: ['access.credential_manage', ...read], expiresIn: 3_600 });
    const { body: key } = await make('keys', { scopes: read }, await tokenOf(maker));
    expect(await keyStatus(key.key)).toBe(200);
    await server.database.pool.query('update oauth_client set expires_at = now() where client_id = $1', [maker.id]);
    afterFiveSeconds();
    expect(await keyStatus(key.key)).toBe(401);
    expect(await tokenStatus(maker)).toBe(401);
    expect(await find('clients', maker.id)).toMatchObject({ state: 'expired' });
  });

  test('narrowed, a maker narrows what it made', async () => {
    const { body: maker } = await make('clients', { scopes: [...administrator] });
    const by = await tokenOf(maker);
    const { body: client } = await make(
      'clients',
      { scopes: ['changelog.viewer_issue', ...read], query: 'entity:order' },
      by,
    );
    const made = await tokenOf(client);
    // A restriction by entity type alone shows names.
    const namesStatus = async () => (await server.call('/changelog/acme/names?field=entity', { token: made })).status;
    expect(await namesStatus()).toBe(200);
    const narrowing = { scopes: read, query: 'type:update', hide: ['price'] };
    expect((await send(`/clients/${maker.id}`, 'PATCH', narrowing)).status).toBe(204);
    expect(await find('clients', client.id)).toMatchObject({
      scopes: read,
      restriction: [
        { query: 'type:update', hide: ['price'] },
        { query: 'entity:order', hide: [] },
      ],
    });
    afterFiveSeconds();
    expect(await namesStatus()).toBe(403);
    expect(
      (await server.call('/changelog/acme/viewer-tokens', { token: made, json: { q: 'a', subject: 's' } })).status,
    ).toBe(403);
    expect((await make('clients', { scopes: read }, by)).status).toBe(403);
  });

  test('narrowed so that it does not show what a query of what it made names, that is refused', async () => {
    const { body: maker } = await make('clients', { scopes: ['access.credential_manage', ...read] });
    const by = await tokenOf(maker);
    const part = { scopes: read, query: 'actorId:u-1', actors: 'all' };
    const { body: client } = await make('clients', part, by);
    const { body: key } = await make('keys', part, by);
    const history = await tokenOf(client);
    const works = async () => [await historyStatus(history), await keyStatus(key.key)];
    expect(await works()).toEqual([200, 200]);
    expect((await send(`/clients/${maker.id}`, 'PATCH', { scopes: read, actors: 'names' })).status).toBe(204);
    afterFiveSeconds();
    expect(await works()).toEqual([401, 401]);
  });

  test('revoked while it makes something, a maker leaves nothing that works', async () => {
    for (let count = 0; count < 5; count += 1) {
      const { body: maker } = await make('clients', { scopes: ['access.credential_manage', ...read] });
      const by = await tokenOf(maker);
      const [made] = await Promise.all([make('keys', { scopes: read }, by), revokeClient(server.context.db, maker.id)]);
      expect([201, 401]).toContain(made.status);
      afterFiveSeconds();
      if (made.status === 201) expect(await keyStatus(made.body.key)).toBe(401);
      // The token is cached as valid; the transaction decides.
      expect((await make('keys', { scopes: read }, by)).status).toBe(401);
    }
  });
});

describe('people', () => {
  test('make what ends with their rights, and expires after 90 days at most', async () => {
    const { browser } = await people.signIn();
    const api = '/console/api/access/acme';
    const post = async (path: string, body: object) => {
      const answer = await browser.post(`${api}${path}`, body);
      return { status: answer.status, body: (await answer.json()) as Answered['body'] };
    };
    const client = await post('/clients', { scopes: read, name: 'Of Jane' });
    expect(client).toMatchObject({ status: 201, body: { madeBy: { name: 'Jane Doe', subject: 'u-1' } } });
    const life = Date.parse(client.body.expiresAt) - Date.parse(client.body.createdAt);
    expect(life).toBe(maxLifetimeOfPerson * 1_000);
    expect((await post('/clients', { scopes: read, expiresIn: maxLifetimeOfPerson + 1 })).status).toBe(400);
    expect((await post('/clients', { scopes: read, expiresIn: maxLifetimeOfPerson })).status).toBe(201);
    const key = await post('/keys', { scopes: read, query: 'entity:order', actors: 'all' });
    expect(key.status).toBe(201);
    const history = await tokenOf(client.body);
    const works = async () => [
      await tokenStatus(client.body),
      await historyStatus(history),
      await keyStatus(key.body.key),
    ];
    expect(await works()).toEqual([200, 200, 200]);

    // Signing out leaves them, as it leaves the person's own keys; the rules end them.
    const other = await people.signIn();
    const rotated = await other.browser.post(`${api}/clients/${client.body.id}/rotate`, {});
    expect(rotated.status).toBe(200);
    client.body = await rotated.json();
    await browser.signOut();
    afterFiveSeconds();
    expect(await works()).toEqual([200, 401, 200]);
    await writeFile(people.rulesFile, rulesOf({ claims: { groups: 'x' }, tenants: ['acme'], scopes: administrator }));
    await people.check();
    await writeFile(people.rulesFile, admits);
    afterFiveSeconds();
    expect(await works()).toEqual([401, 401, 401]);
    const { rows } = await sql`select kind from access_event where client = ${client.body.id} and kind like 'client%'
      order by id`.execute(server.database.db);
    expect(rows.map((row) => (row as { kind: string }).kind)).toEqual([
      'client_made',
      'client_rotated',
      'client_revoked',
    ]);
  });

  test('whose rights come back do not widen what was restricted without them', async () => {
    const { browser } = await people.signIn();
    const wide = [...read, 'configuration.configuration_manage'];
    const made = await browser.post('/console/api/access/acme/clients', { scopes: wide });
    const { id } = (await made.json()) as { id: string };
    const few = ['access.credential_manage', ...read];
    await writeFile(people.rulesFile, rulesOf({ claims: { groups: 'all' }, tenants: ['acme'], scopes: few }));
    await people.check();
    expect((await send(`/clients/${id}`, 'PATCH', { query: 'entity:order' })).status).toBe(204);
    await writeFile(people.rulesFile, admits);
    await people.check();
    expect(await find('clients', id)).toMatchObject({ scopes: read, restriction: [{ query: 'entity:order' }] });
  });

  test('without a refresh token make nothing: nothing would tell when to end it', async () => {
    people.provider.givesRefreshTokens = false;
    const { browser } = await people.signIn();
    people.provider.givesRefreshTokens = true;
    const answer = await browser.post('/console/api/access/acme/keys', { scopes: read });
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain('refresh token');
    const { body } = await make('keys', { scopes: read });
    const path = `/console/api/access/acme/keys/${body.id}`;
    const narrowed = await browser.call(path, { method: 'PATCH', body: '{"rate":1}' });
    expect([narrowed.status, (await browser.call(path, { method: 'DELETE' })).status]).toEqual([204, 204]);
  });

  test('lose what they made when somebody ends their session; a client keeps it when one of its sessions ends', async () => {
    const { browser } = await people.signIn();
    const other = new Browser(server, { publicUrl });
    await other.signIn(manager);
    const madeBy = async (maker: Browser, kind: string): Promise<Answered['body']> =>
      await (await maker.post(`/console/api/access/acme/${kind}`, { scopes: read })).json();
    const ofPerson = [await madeBy(browser, 'clients'), await madeBy(browser, 'keys')];
    const ofClient = [await madeBy(other, 'clients'), await madeBy(other, 'keys')];
    const works = async ([client, key]: Answered['body'][]) => [await tokenStatus(client), await keyStatus(key.key)];
    expect([await works(ofPerson), await works(ofClient)]).toEqual([
      [200, 200],
      [200, 200],
    ]);
    const sessions = (await send('/sessions?pageSize=500', 'GET')).body as { id: string; client: string }[];
    for (const { id } of sessions) expect((await send(`/sessions/${id}`, 'DELETE')).status).toBe(204);
    afterFiveSeconds();
    expect(sessions.map(({ client }) => client)).toContain(manager.clientId);
    expect([await works(ofPerson), await works(ofClient)]).toEqual([
      [401, 401],
      [200, 200],
    ]);
  });

  test('end with all sessions of the person, whichever made it', async () => {
    const { browser } = await people.signIn();
    const made = await (await browser.post('/console/api/access/acme/clients', { scopes: read })).json();
    await browser.signOut();
    expect(await tokenStatus(made as Answered['body'])).toBe(200);
    const person = { issuer: people.provider.issuer, subject: jane.sub };
    expect((await send('/sessions/end', 'POST', person)).status).toBe(200);
    expect(await tokenStatus(made as Answered['body'])).toBe(401);
  });

  test('what a link makes ends when the link signs out, and after eight hours at most', async () => {
    const scope = ['access.credential_manage', ...read].join(' ');
    const { fragment } = await makeConsoleLink(server.context.db, { tenant: 'acme', scope }, 60_000);
    const browser = new Browser(server, { publicUrl });
    await browser.redeem(fragment);
    const api = '/console/api/access/acme';
    const client = (await (await browser.post(`${api}/clients`, { scopes: read })).json()) as Answered['body'];
    const key = (await (await browser.post(`${api}/keys`, { scopes: read })).json()) as Answered['body'];
    for (const { createdAt, expiresAt } of [client, key]) {
      const left = Date.parse(expiresAt) - Date.parse(createdAt);
      expect(left).toBeGreaterThan(maxUnconfirmed - 60_000);
      expect(left).toBeLessThan(maxUnconfirmed);
    }
    expect([await tokenStatus(client), await keyStatus(key.key)]).toEqual([200, 200]);
    await browser.signOut();
    afterFiveSeconds();
    expect([await tokenStatus(client), await keyStatus(key.key)]).toEqual([401, 401]);
    expect(await find('clients', client.id)).toMatchObject({ state: 'ended' });
  });

  test('a session of the console administers with its own origin alone', async () => {
    const browser = new Browser(server, { publicUrl });
    await browser.signIn(manager);
    const path = '/console/api/access/acme/clients';
    expect((await browser.post(path, { scopes: read }, { origin: 'https://evil.example' })).status).toBe(403);
    expect((await browser.post(path, { scopes: read }, { origin: '', 'sec-fetch-site': 'cross-site' })).status).toBe(
      403,
    );
    expect((await browser.post(path, { scopes: read }, { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await browser.call('/access/acme/clients')).status).toBe(401);
    expect((await browser.post('/console/api/access/beta/clients', { scopes: read })).status).toBe(403);
    expect((await browser.post(path, { scopes: read })).status).toBe(201);
  });
});

describe('narrowing', () => {
  test('only removes: anything else is 400 and names it', async () => {
    const { body } = await make('keys', {
      scopes: ['ai.completion_manage', ...read],
      models: ['openai/a', 'openai/b'],
      rate: 5,
      expiresIn: 3_600,
    });
    const narrow = (json: object) => send(`/keys/${body.id}`, 'PATCH', json);
    for (const [json, field] of [
      [{}, undefined],
      [{ rate: 6 }, 'rate'],
      [{ models: ['openai/a', 'openai/c'] }, 'models'],
      [{ expiresIn: 4_000 }, 'expiresIn'],
      [{ scopes: read, models: ['openai/a'] }, 'models'],
      [{ query: 'entity:a' }, 'scopes'],
      [{ name: 'Other' }, 'name'],
      [{ scopes: [] }, 'scopes'],
    ] as const) {
      const details = field === undefined ? undefined : [{ field }];
      expect(await narrow(json), JSON.stringify(json)).toMatchObject({ status: 400, body: details ? { details } : {} });
    }
    expect(await find('keys', body.id)).toMatchObject({ rate: 5, models: ['openai/a', 'openai/b'] });
    expect((await narrow({ rate: 2, models: ['openai/b'], expiresIn: 600 })).status).toBe(204);
    expect((await narrow({ scopes: read, query: 'entity:a' })).status).toBe(204);
    const narrowed = await find('keys', body.id);
    expect(narrowed).toMatchObject({
      scopes: read,
      rate: 2,
      models: ['openai/b'],
      restriction: [{ query: 'entity:a' }],
    });
    expect(Date.parse(narrowed.expiresAt)).toBeLessThan(Date.parse(body.expiresAt) - 2_900_000);
    expect(await narrow({ scopes: ['ai.completion_manage'] })).toMatchObject({
      status: 400,
      body: { details: [{ field: 'scopes' }] },
    });
    for (const json of [{ actors: 'all' }, { scopes: ['ai.completion_manage', ...read] }])
      expect((await narrow(json)).status).toBe(400);
    expect((await narrow({ actors: false })).status).toBe(204);
    expect((await narrow({ actors: 'names' })).status).toBe(400);
    expect(await keyStatus(body.key)).toBe(200);
  });

  test('a query is added to those before it, eight times at most', async () => {
    const { body } = await make('clients', { scopes: read, query: 'entity:order', actors: 'all' });
    for (let parts = 2; parts <= maxParts; parts += 1)
      expect((await send(`/clients/${body.id}`, 'PATCH', { hide: [`p${parts}`] })).status).toBe(204);
    const { restriction } = await find('clients', body.id);
    expect(restriction).toHaveLength(maxParts);
    expect(restriction[1]).toEqual({ query: '', hide: ['p2'], actors: 'all' });
    expect(await send(`/clients/${body.id}`, 'PATCH', { query: 'type:update' })).toMatchObject({
      status: 400,
      body: { details: [{ field: 'query' }] },
    });
  });

  test('takes effect on tokens that were issued before, and never gives back', async () => {
    const { body } = await make('clients', { scopes: [...administrator] });
    const before = await tokenOf(body);
    const browser = new Browser(server, { publicUrl });
    await browser.signIn({ clientId: body.id, clientSecret: body.clientSecret });
    expect((await make('clients', { scopes: read }, before)).status).toBe(201);
    expect((await send(`/clients/${body.id}`, 'PATCH', { scopes: read }, before)).status).toBe(204);
    afterFiveSeconds();
    expect((await make('clients', { scopes: read }, before)).status).toBe(403);
    expect((await browser.post('/console/api/access/acme/keys', { scopes: read })).status).toBe(403);
    expect(await historyStatus(before)).toBe(200);
    expect((await send(`/clients/${body.id}`, 'PATCH', { scopes: [...administrator] })).status).toBe(400);
  });
});

test('an export that was made before its client was narrowed is there no more, and later ones are', async () => {
  const { body } = await make('clients', { scopes: read });
  const by = await tokenOf(body);
  const call: Call = (path, init) => server.call(path, { ...init, token: by });
  const before = await startExport(call, 'acme', { q: 'entity:*', format: 'NDJSON' });
  expect((await endOfJob(call, 'acme', before)).status).toBe('success');
  const statusesOf = async (id: string) =>
    await Promise.all(['', '/content'].map(async (part) => (await call(`/ai-service/acme/jobs/${id}${part}`)).status));
  expect(await statusesOf(before)).toEqual([200, 200]);
  expect((await send(`/clients/${body.id}`, 'PATCH', { query: 'entity:a', hide: ['b'] })).status).toBe(204);
  afterFiveSeconds();
  expect(await statusesOf(before)).toEqual([404, 404]);
  const later = await startExport(call, 'acme', { q: 'entity:*', format: 'NDJSON' });
  expect((await endOfJob(call, 'acme', later)).status).toBe('success');
  expect(await statusesOf(later)).toEqual([200, 200]);
  const listed = (await (await call('/ai-service/acme/jobs')).json()) as { id: string }[];
  expect(listed.map(({ id }) => id)).toEqual([later]);
});

describe('an open stream', () => {
  test.each([
    ['loses the scope', { scopes: ['access.credential_view'] }],
    ['sees a part alone', { scopes: ['changelog.changelog_read'], query: 'entity:a' }],
  ])('ends once its client %s', async (_, narrowing) => {
    const { body } = await make('clients', { scopes: ['access.credential_view', ...read] });
    const headers = { accept: 'text/event-stream' };
    const stream = await server.call('/changelog/acme/feed', { token: await tokenOf(body), headers });
    expect(stream.status).toBe(200);
    expect((await send(`/clients/${body.id}`, 'PATCH', narrowing)).status).toBe(204);
    afterFiveSeconds();
    // It would be open for a quarter of an hour.
    expect(await stream.text()).toBeDefined();
  });
});

describe('rotation', () => {
  test('ends the old secret of a client, and its tokens; the new one works at once', async () => {
    const { body } = await make('clients', { scopes: read });
    const before = await tokenOf(body);
    expect(await historyStatus(before)).toBe(200);
    const rotated = await send(`/clients/${body.id}/rotate`, 'POST');
    expect(rotated).toMatchObject({ status: 200, body: { id: body.id, clientSecret: expect.any(String) } });
    expect(rotated.headers.get('cache-control')).toBe('no-store');
    expect(await historyStatus(await tokenOf(rotated.body))).toBe(200);
    expect(await tokenStatus(body)).toBe(401);
    afterFiveSeconds();
    expect(await historyStatus(before)).toBe(401);
    expect(await historyStatus(await tokenOf(rotated.body))).toBe(200);
  });

  test('ends the old secret of a key; the new one works at once, also where the old one is cached', async () => {
    const { body } = await make('keys', { scopes: read });
    expect(await keyStatus(body.key)).toBe(200);
    const { body: rotated } = await send(`/keys/${body.id}/rotate`, 'POST');
    expect(rotated.key).not.toBe(body.key);
    expect(await keyStatus(rotated.key)).toBe(200);
    afterFiveSeconds();
    expect(await keyStatus(body.key)).toBe(401);
    expect(await keyStatus(rotated.key)).toBe(200);
  });

  test('is for what ends with the caller, and has no scope beyond those of the caller', async () => {
    const operators = await server.createClient('acme', { scope: read.join(' ') });
    expect(await send(`/clients/${operators.clientId}/rotate`, 'POST')).toMatchObject({
      status: 403,
      body: { message: expect.stringContaining('annals client rotate') },
    });
    // A caller may rotate itself, but not with a token of fewer scopes.
    const own = await server.createClient('acme', { scope: administrator.join(' ') });
    const few = await server.tokenOf(own, 'access.credential_manage');
    expect((await send(`/clients/${own.clientId}/rotate`, 'POST', undefined, few)).status).toBe(403);
    expect((await send(`/clients/${own.clientId}/rotate`, 'POST', undefined, await server.tokenOf(own))).status).toBe(
      200,
    );
    // What the manager's client made ends with the manager.
    const { body: first } = await make('clients', { scopes: ['access.credential_manage', ...read] });
    const { body: second } = await make('keys', { scopes: read }, await tokenOf(first));
    expect((await send(`/keys/${second.id}/rotate`, 'POST')).status).toBe(200);
    // And not the other way round.
    const third = await make('keys', { scopes: read });
    expect((await send(`/keys/${third.body.id}/rotate`, 'POST', undefined, await tokenOf(first))).status).toBe(403);
  });

  test('ends the sessions that began with the old secret, but for the one that rotates', async () => {
    const { body } = await make('clients', { scopes: ['access.credential_manage', ...read] });
    const signIn = async ({ id: clientId, clientSecret }: { id: string; clientSecret: string }) => {
      const browser = new Browser(server, { publicUrl });
      const { status } = await browser.signIn({ clientId, clientSecret });
      return { browser, status };
    };
    const path = `/console/api/access/acme/clients/${body.id}/rotate`;
    const [own, other] = [await signIn(body), await signIn(body)];
    const bystander = await signIn((await make('clients', { scopes: read })).body);
    const sessionStatus = async ({ browser }: typeof own) => (await browser.call('/console/api/session')).status;
    const rotated = await own.browser.call(path, { method: 'POST' });
    expect(rotated.status).toBe(200);
    expect(await Promise.all([own, other, bystander].map(sessionStatus))).toEqual([200, 401, 200]);
    const next = await signIn((await rotated.json()) as typeof body);
    // A session of a stolen secret must not learn the new one.
    const { body: again } = await send(`/clients/${body.id}/rotate`, 'POST');
    expect(await Promise.all([own, next].map(({ browser }) => browser.call(path, { method: 'POST' })))).toMatchObject([
      { status: 401 },
      { status: 401 },
    ]);
    expect((await signIn(body)).status).toBe(401);
    expect((await signIn(again)).status).toBe(200);
    const auditor = await server.token('acme', { scope: 'changelog.access_read' });
    const q = `kind:session_ended client:${body.id}`;
    const ended = await server.call(`/changelog/acme/accesses?q=${encodeURIComponent(q)}`, { token: auditor });
    expect(await ended.json()).toMatchObject(
      [body.id, manager.clientId, manager.clientId].map((byClient) => ({
        session: expect.any(String),
        details: { byClient },
      })),
    );
  });

  test('while somebody signs in with the old secret, leaves no session of it', async () => {
    const { body } = await make('clients', { scopes: read });
    const rotating = await server.database.pool.connect();
    try {
      await rotating.query('begin');
      await rotating.query('select from oauth_client where client_id = $1 for update', [body.id]);
      const browser = new Browser(server, { publicUrl });
      const signingIn = browser.signIn({ clientId: body.id, clientSecret: body.clientSecret });
      await eventually(() => statementsWaiting(server.database)).toHaveLength(1);
      await rotating.query('update oauth_client set rotations = 1 where client_id = $1', [body.id]);
      await rotating.query('commit');
      expect((await signingIn).status).toBe(401);
    } finally {
      rotating.release();
    }
  });

  test('at the same time as narrowing, both take effect', async () => {
    const { body } = await make('clients', { scopes: ['changelog.viewer_issue', ...read] });
    const [narrowed, rotated] = await Promise.all([
      send(`/clients/${body.id}`, 'PATCH', { scopes: read }),
      send(`/clients/${body.id}/rotate`, 'POST'),
    ]);
    expect([narrowed.status, rotated.status]).toEqual([204, 200]);
    expect(await find('clients', body.id)).toMatchObject({ scopes: read });
    expect(await tokenStatus(body)).toBe(401);
    expect(await tokenStatus(rotated.body)).toBe(200);
  });
});

describe('lists', () => {
  test('have pages of both kinds, a filter, a sort and fields, and a total', async () => {
    const by = await server.token('pages', { scope: administrator.join(' ') });
    const list = (query: string) =>
      server.call(`/access/pages/keys${query}`, { token: by, headers: { 'x-total-count': 'true' } });
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      const name = `Key ${count}`;
      ids.push((await send('/keys', 'POST', { scopes: read, name, rate: count + 1 }, by, 'pages')).body.id);
    }
    await send(`/keys/${ids[0]}`, 'DELETE', undefined, by, 'pages');
    const page = await list('?pageSize=2&pageNumber=2&sort=rate:DESC');
    expect(page.headers.get('x-total-count')).toBe('5');
    expect(((await page.json()) as { name: string }[]).map(({ name }) => name)).toEqual(['Key 2', 'Key 1']);
    const next = await list(`?pageSize=2&sort=rate:DESC&next=${page.headers.get('x-next-cursor')}`);
    expect(((await next.json()) as { name: string }[]).map(({ name }) => name)).toEqual(['Key 0']);
    const active = await server.call('/access/pages/keys/search?fields=name', {
      token: by,
      json: { q: 'state:active' },
    });
    expect(((await active.json()) as object[]).length).toBe(4);
    const clients = await server.call('/access/pages/clients?fields=name,state', { token: by });
    expect(await clients.json()).toEqual([{ id: expect.any(String), name: expect.any(String), state: 'active' }]);
  });

  test('show the last use with its address, and no session of a person or a link', async () => {
    const { body: client } = await make('clients', { scopes: read });
    const { body: key } = await make('keys', { scopes: read });
    const headers = { 'x-forwarded-for': '203.0.113.8' };
    const by = await tokenOf(client);
    await (await server.call('/changelog/acme/changelogs', { token: by, headers })).body?.cancel();
    expect(await keyStatus(key.key)).toBe(200);
    await expect
      .poll(() => find('clients', client.id))
      .toMatchObject({ usedAddress: '203.0.113.8', usedAt: expect.any(String) });
    await expect.poll(() => find('keys', key.id)).toMatchObject({ usedAddress: '203.0.113.7' });
    const { browser } = await people.signIn();
    const session = (await (await browser.call('/console/api/session')).json()) as { client: string };
    expect((await send(`/clients/${session.client}`, 'GET')).status).toBe(404);
    expect((await send(`/clients/${session.client}/rotate`, 'POST')).status).toBe(404);
    expect((await send(`/clients/${session.client}`, 'DELETE')).status).toBe(404);
  });

  test("another tenant's are 404, and untouched", async () => {
    const foreign = await server.createClient('beta', { scope: administrator.join(' ') });
    const foreignToken = await server.tokenOf(foreign);
    const { body: key } = await send('/keys', 'POST', { scopes: read }, foreignToken, 'beta');
    for (const [kind, id] of [
      ['clients', foreign.clientId],
      ['keys', key.id],
      ['clients', 'acme.00000000000000000000'],
    ]) {
      const missing = `There is no such ${kind?.slice(0, -1)}.`;
      for (const [path, method, json] of [
        ['', 'GET', undefined],
        ['', 'PATCH', { scopes: read }],
        ['/rotate', 'POST', undefined],
        ['', 'DELETE', undefined],
      ] as const)
        expect(await send(`/${kind}/${id}${path}`, method, json), `${method} ${id}`).toMatchObject({
          status: 404,
          body: { message: missing },
        });
    }
    expect((await send('/clients', 'GET', undefined, token, 'beta')).status).toBe(403);
    expect((await send('/keys', 'GET', undefined, foreignToken, 'beta')).body).toMatchObject([
      { id: key.id, state: 'active' },
    ]);
  });
});

test('each act is a row of the accesses, with who did it, from where, and no secret', async () => {
  const by = await server.createClient('rows', {
    scope: [...administrator, 'changelog.access_read'].join(' '),
    name: 'Doer',
  });
  const acting = await server.tokenOf(by);
  for (const kind of ['clients', 'keys']) {
    const { body } = await send(`/${kind}`, 'POST', { scopes: read, name: `Of ${kind}` }, acting, 'rows');
    await send(`/${kind}/${body.id}`, 'PATCH', { hide: ['a'], actors: false }, acting, 'rows');
    await send(`/${kind}/${body.id}/rotate`, 'POST', undefined, acting, 'rows');
    for (let count = 0; count < 2; count += 1)
      expect((await send(`/${kind}/${body.id}`, 'DELETE', undefined, acting, 'rows')).status).toBe(204);
  }
  const list = await server.call('/changelog/rows/accesses?sort=_id', { token: acting });
  const rows = ((await list.json()) as { kind: string; name: string; details: object; address?: string }[]).filter(
    ({ name }) => name.startsWith('Of '),
  );
  const scope = read[0];
  const doer = { by: 'Doer', byClient: by.clientId };
  const made = { ...doer, scope };
  expect(rows.map(({ kind, details, address }) => [kind, details, address])).toEqual(
    ['client', 'key'].flatMap((noun) => [
      [`${noun}_made`, made, '127.0.0.1'],
      [`${noun}_narrowed`, { ...made, changed: 'hide actors' }, '127.0.0.1'],
      [`${noun}_rotated`, doer, '127.0.0.1'],
      [`${noun}_revoked`, doer, '127.0.0.1'],
    ]),
  );
});

test('operators narrow and rotate any client and key by commands, which say what is wrong', async () => {
  const environment = {
    DATABASE_URL: server.database.url,
    ANNALS_SECRET_KEY: testSecretKeys.map((secret) => Buffer.from(secret).toString('base64')).join(','),
  };
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await annals(args, environment);
    return { code, answer: code === 0 ? (JSON.parse(stdout) as Answered['body']) : undefined, stderr };
  };
  const wide = ['--tenant', 'acme', '--scope', 'changelog.changelog_read changelog.viewer_issue', '--expires', 'P1D'];
  const { answer: client } = await run('client', 'create', ...wide);
  const narrowed = await run(
    'client',
    'narrow',
    client.clientId,
    '--scope',
    'changelog.changelog_read',
    '--hide',
    'a b',
  );
  expect(narrowed.answer).toEqual({ clientId: client.clientId, tenant: 'acme', narrowed: true });
  const { answer: rotated } = await run('client', 'rotate', client.clientId);
  expect(rotated).toEqual({
    clientId: client.clientId,
    tenant: 'acme',
    clientSecret: expect.stringMatching(/^.{43}$/),
  });
  expect(await tokenStatus({ id: client.clientId, clientSecret: client.clientSecret })).toBe(401);
  expect(await tokenStatus({ id: client.clientId, clientSecret: rotated.clientSecret })).toBe(200);
  const { answer: listed } = await run('client', 'list', '--tenant', 'acme');
  const shown = (listed as { clientId: string }[]).find(({ clientId }) => clientId === client.clientId);
  expect(shown).toMatchObject({ scope: read[0], hide: ['a', 'b'], state: 'active', expiresAt: expect.any(String) });

  const { answer: key } = await run(
    'key',
    'create',
    '--tenant',
    'acme',
    '--scope',
    'changelog.changelog_read',
    '--rate',
    '5',
  );
  const wider = await run('key', 'narrow', '--tenant', 'acme', key.id, '--rate', '6');
  expect([wider.code, wider.stderr]).toEqual([2, expect.stringContaining('rate can only be lowered: it is 5')]);
  const { answer: replaced } = await run('key', 'rotate', '--tenant', 'acme', key.id);
  expect(replaced).toEqual({ id: key.id, tenant: 'acme', key: expect.stringContaining(`annals_${key.id}_`) });
  expect([await keyStatus(key.key), await keyStatus(replaced.key)]).toEqual([401, 200]);
  const missing = await run('key', 'rotate', '--tenant', 'beta', key.id);
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('There is no such key')]);
  expect((await run('client', 'rotate', 'acme.00000000000000000000')).code).toBe(1);
});
