import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { listClients } from '../../../src/access/oauth/clients.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Browser } from '../../support/server/browser.ts';
import { annals } from '../../support/server/command.ts';
import { linkFor } from '../../support/server/console-sessions.ts';
import { eventually } from '../../support/server/patience.ts';
import { PeopleServer, publicUrl, rulesOf, sessionOf } from '../../support/server/people.ts';
import { startTestServer, testSecretKeys } from '../../support/server/server.ts';

let waited = 0;
const clock = { elapsed: () => performance.now() + waited };
const people = closeAfterAll(
  await PeopleServer.start(
    rulesOf(
      {
        claims: { groups: 'admins' },
        tenants: ['acme'],
        scopes: ['access.credential_manage', 'changelog.changelog_read'],
      },
      { claims: { groups: 'all' }, tenants: ['acme', 'beta'], scopes: ['changelog.changelog_read'] },
    ),
    { now: () => Date.now(), ...clock },
  ),
);
const { server, provider } = people;
await server.createTenant('acme');
await server.createTenant('beta');
const second = closeAfterAll(
  await startTestServer({ environment: people.environment, database: server.database, clock }),
);

beforeEach(async () => {
  await sql`delete from console_session`.execute(server.database.db);
});

const path = '/access/acme/sessions';
const environment = {
  DATABASE_URL: server.database.url,
  ANNALS_SECRET_KEY: testSecretKeys.map((key) => Buffer.from(key).toString('base64')).join(','),
  LOG_LEVEL: 'fatal',
};

interface Listed {
  id: string;
  client: string;
  name: string;
  issuer?: string;
  subject?: string;
  by: string;
  address: string;
  program: string;
  createdAt: string;
  seenAt: string;
  expiresAt: string;
}

async function signIn(sub: string, groups = 'all', to = '') {
  provider.claims = { sub, name: `Person ${sub}`, groups: [groups] };
  return (await people.signIn(to)).browser;
}

async function statusAt(browser: Browser, at = server): Promise<number> {
  const copy = new Browser(at, { publicUrl });
  copy.cookie = browser.cookie;
  return (await sessionOf(copy)).status;
}

const idOf = async (browser: Browser) => String((await sessionOf(browser)).body.id);

const viewing = await server.token('acme', { scope: 'access.credential_view' });
const manager = await server.createClient('acme', { scope: 'access.credential_manage', name: 'Keeper' });
const managing = await server.tokenOf(manager);

async function list(query = '', token = viewing) {
  const answer = await server.call(`${path}${query}`, { token, headers: { 'X-Total-Count': 'true' } });
  return { answer, items: (await answer.json()) as Listed[] };
}

const end = async (id: string, token = managing) => {
  const answer = await server.call(`${path}/${id}`, { method: 'DELETE', token });
  await answer.text();
  return answer.status;
};

const endAll = async (person: object, token = managing) => {
  const answer = await server.call(`${path}/end`, { json: person, token });
  return { status: answer.status, body: await answer.json() };
};

describe('the list', () => {
  test('has who is signed in, by what, since when, last seen, from where and with which program', async () => {
    const person = await signIn('u-1');
    const client = await server.createClient('acme', { name: 'Batch' });
    const ofSecret = new Browser(server, { publicUrl });
    await ofSecret.call('/console/api/session', {
      method: 'POST',
      body: JSON.stringify({ clientId: client.clientId, clientSecret: client.clientSecret }),
      headers: { 'user-agent': `Netscape\u009f/4 ${'x'.repeat(300)}`, 'x-forwarded-for': '203.0.113.7' },
    });
    const ofLink = new Browser(server, { publicUrl });
    await ofLink.redeem((await linkFor(server, 'acme')).fragment);
    const { items } = await list('?sort=createdAt:ASC');
    expect(items).toMatchObject([
      { id: await idOf(person), name: 'Person u-1', issuer: provider.issuer, subject: 'u-1', by: 'account' },
      { id: await idOf(ofSecret), name: 'Batch', client: client.clientId, by: 'secret', address: '203.0.113.7' },
      { id: await idOf(ofLink), name: 'Guest', by: 'link' },
    ]);
    expect(items[1]?.program).toHaveLength(200);
    expect(items[1]?.issuer).toBeUndefined();
    for (const { createdAt, seenAt, expiresAt } of items) {
      expect(Date.parse(seenAt)).toBeGreaterThanOrEqual(Date.parse(createdAt));
      expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now());
    }
    expect(await (await server.call(`${path}/${items[0]?.id}`, { token: viewing })).json()).toEqual(items[0]);
  });

  test('is paged, filtered and searched like every list, and has no other tenant', async () => {
    for (const sub of ['u-1', 'u-2', 'u-3']) await signIn(sub);
    await signIn('u-4', 'all', '?tenant=beta');
    const first = await list('?sort=subject:ASC&pageSize=2');
    expect([first.items.map(({ subject }) => subject), first.answer.headers.get('x-total-count')]).toEqual([
      ['u-1', 'u-2'],
      '3',
    ]);
    const next = first.answer.headers.get('x-next-cursor') ?? '';
    const rest = await list(`?sort=subject:ASC&pageSize=2&next=${next}`);
    expect(rest.items.map(({ subject }) => subject)).toEqual(['u-3']);
    expect((await list('?q=subject:u-2')).items.map(({ name }) => name)).toEqual(['Person u-2']);
    const found = await server.call(`${path}/search`, { json: { q: 'subject:u-3' }, token: viewing });
    expect(await found.json()).toMatchObject([{ name: 'Person u-3' }]);
    const [shown = {}] = (await list('?fields=name')).items;
    expect(Object.keys(shown).sort()).toEqual(['id', 'name']);
  });

  test('has no session that expired, signed out, or whose client was revoked, has expired or ended with its maker', async () => {
    const browser = await signIn('u-1');
    await browser.post('/console/api/session/keys', {});
    await browser.signOut();
    // It remains for the key, without what told of the person's device.
    const { rows } = await sql`select for_keys, address, program, sid, sealed_test from console_session`.execute(
      server.database.db,
    );
    expect(rows).toEqual([{ for_keys: true, address: null, program: null, sid: null, sealed_test: null }]);
    await signIn('u-2');
    await sql`update console_session set expires_at = statement_timestamp() where subject = 'u-2'`.execute(
      server.database.db,
    );
    await signIn('u-3');
    await sql`update oauth_client set revoked_at = now() where name = 'Person u-3'`.execute(server.database.db);
    const [expired, made] = [await server.createClient('acme'), await server.createClient('acme')];
    for (const client of [expired, made]) await new Browser(server, { publicUrl }).signIn(client);
    expect((await list()).items).toHaveLength(2);
    await sql`update oauth_client set expires_at = now() where client_id = ${expired.clientId}`.execute(
      server.database.db,
    );
    await sql`update oauth_client set makers = '{acme.gone}' where client_id = ${made.clientId}`.execute(
      server.database.db,
    );
    expect((await list()).items).toEqual([]);
  });

  test('needs one of the two scopes, and its end the one that manages; a restricted client cannot have either', async () => {
    const browser = await signIn('u-1');
    const id = await idOf(browser);
    const reader = await server.token('acme', { scope: 'changelog.changelog_manage changelog.access_read' });
    const other = await server.token('beta', { scope: 'access.credential_manage' });
    const person = { issuer: provider.issuer, subject: 'u-1' };
    for (const token of [reader, other]) {
      expect((await server.call(path, { token })).status).toBe(403);
      expect((await server.call(`${path}/${id}`, { token })).status).toBe(403);
    }
    for (const token of [reader, other, viewing])
      expect([await end(id, token), (await endAll(person, token)).status]).toEqual([403, 403]);
    expect(await statusAt(browser)).toBe(200);
    expect((await list('', managing)).items).toHaveLength(1);
    for (const scope of ['access.credential_view', 'access.credential_manage']) {
      const restricted = await annals(
        ['client', 'create', '--tenant', 'acme', '--scope', scope, '--query', 'entity:order'],
        environment,
      );
      expect([restricted.code, restricted.stderr]).toEqual([2, expect.stringContaining(`cannot have ${scope}`)]);
    }
  });
});

describe('the last use of a session', () => {
  const rows = async () =>
    (
      await sql<{ xmin: string; seen_at: Date; address: string; program: string }>`
      select xmin::text, seen_at, address, program from console_session`.execute(server.database.db)
    ).rows;

  test('is noted after a minute, once, with the address and the program of then, and by no process twice', async () => {
    const browser = await signIn('u-1');
    const [begun] = await rows();
    const visit = async (at = server) => {
      const copy = new Browser(at, { publicUrl });
      copy.cookie = browser.cookie;
      const headers = { 'user-agent': 'Later/1', 'x-forwarded-for': '203.0.113.8' };
      expect((await copy.call('/console/api/session', { headers })).status).toBe(200);
    };
    await Promise.all([visit(), visit(second), visit()]);
    const age = async (seconds: number) =>
      await sql`update console_session set seen_at = seen_at - ${seconds} * interval '1 second'`.execute(
        server.database.db,
      );
    await age(50);
    const [before] = await rows();
    await visit();
    expect(await rows()).toEqual([before]);
    expect(before).toMatchObject({ address: begun?.address, program: begun?.program });

    await age(10);
    await Promise.all([visit(), visit(second), visit(), visit(second)]);
    await eventually(async () => (await rows())[0]?.program === 'Later/1');
    const [noted] = await rows();
    expect(noted).toMatchObject({ address: '203.0.113.8', program: 'Later/1' });
    expect(Date.now() - Number(noted?.seen_at)).toBeLessThan(30_000);
    await Promise.all([visit(), visit(second)]);
    expect(await rows()).toEqual([noted]);
  });
});

describe('ending a session', () => {
  test('takes effect in every process, with the keys made in it, and is an access of who ended it', async () => {
    const browser = await signIn('u-1');
    const other = await signIn('u-2');
    const made = await browser.post('/console/api/session/keys', {});
    const { id: key } = (await made.json()) as { id: string };
    const { body } = await sessionOf(browser);
    expect(await end(String(body.id))).toBe(204);
    for (const at of [server, second])
      expect([await statusAt(browser, at), await statusAt(other, at)]).toEqual([401, 200]);
    expect(await end(String(body.id))).toBe(404);
    const clients = await listClients(server.context.db, 'acme');
    expect(clients.map(({ clientId }) => clientId)).not.toContain(body.client);

    const reader = await server.token('acme', { scope: 'changelog.access_read' });
    const accesses = async (q: string) =>
      await (await server.call(`/changelog/acme/accesses?q=${encodeURIComponent(q)}`, { token: reader })).json();
    expect(await accesses(`kind:session_ended session:${body.id}`)).toMatchObject([
      {
        client: body.client,
        name: 'Person u-1',
        subject: 'u-1',
        details: { by: 'Keeper', byClient: manager.clientId },
        address: '127.0.0.1',
      },
    ]);
    expect(await accesses(`kind:key_revoked client:${key}`)).toMatchObject([{ details: { why: 'session' } }]);
  });

  test.each<[string, (browser: Browser) => Promise<unknown>]>([
    ['is ended', async (browser) => await end(await idOf(browser))],
    ['is ended with all of the person', () => endAll({ issuer: provider.issuer, subject: 'u-1' })],
  ])('that %s ends the clients that were made in it, within five seconds in another process', async (_what, finish) => {
    const browser = await signIn('u-1', 'admins');
    const name = `Made ${randomUUID()}`;
    const body = { name, scopes: ['changelog.changelog_read'], expiresIn: 3_600 };
    const made = await browser.post('/console/api/access/acme/clients', body);
    expect(made.status).toBe(201);
    const { id: clientId, clientSecret } = (await made.json()) as { id: string; clientSecret: string };
    const token = await server.tokenOf({ ...manager, clientId, clientSecret });
    const read = async () => {
      const answer = await second.call('/changelog/acme/changelogs', { token });
      await answer.text();
      return answer.status;
    };
    expect(await read()).toBe(200);
    await finish(browser);
    waited += 5_000;
    expect(await read()).toBe(401);
  });

  test("of one's own ends it as that of another", async () => {
    const browser = await signIn('u-1', 'admins');
    const id = await idOf(browser);
    expect((await browser.call(`/console/api${path}`)).status).toBe(200);
    const answer = await browser.call(`/console/api${path}/${id}`, { method: 'DELETE' });
    expect(answer.status).toBe(204);
    expect((await sessionOf(browser)).status).toBe(401);
  });

  test('needs the origin of the console, as every write with a cookie', async () => {
    const browser = await signIn('u-1', 'admins');
    const id = await idOf(browser);
    const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    const answer = await browser.call(`/console/api${path}/${id}`, { method: 'DELETE', headers });
    expect(answer.status).toBe(403);
    expect((await sessionOf(browser)).status).toBe(200);
  });

  test('with an id of another tenant, or that is none, finds nothing', async () => {
    const there = await signIn('u-1', 'all', '?tenant=beta');
    for (const id of [await idOf(there), '0', "' or true --", '*', '%', '0'.repeat(64)])
      expect([id, await end(encodeURIComponent(id))]).toEqual([id, 404]);
    expect(await statusAt(there)).toBe(200);
  });

  test('of all of a person leaves other people and other tenants, and ends keys whose session is over', async () => {
    const first = await signIn('u-1');
    await first.post('/console/api/session/keys', {});
    await first.signOut();
    const sessions = [await signIn('u-1'), await signIn('u-1')];
    const others = [await signIn('u-2'), await signIn('u-1', 'all', '?tenant=beta')];
    const person = { issuer: provider.issuer, subject: 'u-1' };
    expect(await endAll({ ...person, issuer: 'https://other.example' })).toEqual({ status: 200, body: { ended: 0 } });
    expect(await endAll(person)).toEqual({ status: 200, body: { ended: 2 } });
    for (const at of [server, second]) {
      expect(await Promise.all(sessions.map((browser) => statusAt(browser, at)))).toEqual([401, 401]);
      expect(await Promise.all(others.map((browser) => statusAt(browser, at)))).toEqual([200, 200]);
    }
    const { rows } = await sql`select from access_key where subject = 'u-1' and revoked_at is null`.execute(
      server.database.db,
    );
    expect(rows).toEqual([]);
    expect(await endAll(person)).toEqual({ status: 200, body: { ended: 0 } });
  });

  test.each<[object, string]>([
    [{ subject: 'u-1' }, 'issuer'],
    [{ issuer: 'https://login.example', subject: '' }, 'subject'],
    [{ issuer: 'https://login.example', subject: 'u-1', name: 'x' }, 'name'],
    [{ issuer: 'https://login.example', subject: 'u\u0000' }, 'subject'],
  ])('of all of a person names what is wrong: %j', async (person, field) => {
    const { status, body } = await endAll(person);
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining(field)]);
  });
});

describe('annals session', () => {
  const run = async (...args: string[]) => await annals(['session', ...args], environment);

  test('lists sessions, and ends one or all of a person', async () => {
    const [first, other, last] = [await signIn('u-1'), await signIn('u-2'), await signIn('u-1')];
    const listed = JSON.parse((await run('list', '--tenant', 'acme')).stdout) as Listed[];
    expect(listed.map(({ id }) => id)).toEqual([await idOf(last), await idOf(other), await idOf(first)]);
    const otherId = await idOf(other);
    const answer = JSON.parse((await run('end', '--tenant', 'acme', otherId)).stdout);
    expect(answer).toEqual({ id: otherId, tenant: 'acme', ended: true });
    expect(await statusAt(other)).toBe(401);
    const person = ['--issuer', provider.issuer, '--subject', 'u-1'];
    expect(JSON.parse((await run('end', '--tenant', 'acme', ...person)).stdout)).toMatchObject({ ended: 2 });
    expect([await statusAt(first), await statusAt(last)]).toEqual([401, 401]);
    const { rows } = await sql<{ by: string }>`
      select details ->> 'by' as by from access_event where kind = 'session_ended' and session = ${otherId}`.execute(
      server.database.db,
    );
    expect(rows).toEqual([{ by: 'operator' }]);
  });

  test.each<[string[], number, string]>([
    [['end', '--tenant', 'acme', 'none'], 1, 'there is no active session none of the tenant acme'],
    [['end', '--tenant', 'acme'], 2, 'session end needs --tenant, and one SESSION_ID or --issuer and --subject'],
    [['end', '--tenant', 'acme', 'a', 'b'], 2, 'session end needs'],
    [['end', '--tenant', 'acme', 'a', '--issuer', 'i', '--subject', 's'], 2, 'session end needs'],
    [['end', '--tenant', 'acme', '--issuer', 'i'], 2, 'session end needs'],
    [['end', '--tenant', 'gamma', 'a'], 1, 'gamma'],
    [['list'], 2, 'session list needs --tenant'],
  ])('%j is refused', async (args, code, message) => {
    const refused = await run(...args);
    expect([refused.code, refused.stderr]).toEqual([code, expect.stringContaining(message)]);
  });
});
