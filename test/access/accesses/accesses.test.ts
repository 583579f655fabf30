import { describe, expect, test } from 'vitest';
import { kindOfRead } from '../../../src/access/accesses/count-reads.ts';
import { accessRetentionDays, dropOldAccesses } from '../../../src/access/accesses/store.ts';
import { createKey } from '../../../src/access/keys/key-store.ts';
import { type NewClient, revokeClient } from '../../../src/access/oauth/clients.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { deleteTenant } from '../../../src/postgres/tenants/delete-tenant.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Browser } from '../../support/server/browser.ts';
import { linkFor } from '../../support/server/console-sessions.ts';
import { contentOf, endOfJob, startExport } from '../../support/server/jobs.ts';
import { startTestServer } from '../../support/server/server.ts';

interface Access {
  id: string;
  at: string;
  kind: string;
  client: string;
  name: string;
  details: Record<string, unknown>;
  count: number;
  address?: string;
  program?: string;
  session?: string;
}

const server = closeAfterAll(await startTestServer());

/** A tenant with a client that may do everything. */
async function newTenant(tenant: string): Promise<{ client: NewClient; token: string }> {
  const client = await server.createClient(tenant, { name: 'Jane Doe' });
  return { client, token: await server.tokenOf(client) };
}

async function accessesOf(tenant: string, token: string, q = ''): Promise<Access[]> {
  const parameters = new URLSearchParams({ sort: '_id:ASC', ...(q !== '' && { q }) });
  const response = await server.call(`/changelog/${tenant}/accesses?${parameters}`, { token });
  expect(response.status).toBe(200);
  const text = await response.text();
  const accesses: Access[] = JSON.parse(text);
  expect(text).toBe(JSON.stringify(accesses));
  return accesses;
}

async function guess(clientId: string, clientSecret: string): Promise<number> {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
  });
  const response = await fetch(`${server.baseUrl}/oauth/token`, { method: 'POST', body });
  await response.text();
  return response.status;
}

test('sign-ins, sign-outs, links and the making and revoking of clients are listed with their time, even after the client is gone', async () => {
  const { client, token } = await newTenant('acme');
  const browser = new Browser(server);
  await browser.signIn(client);
  await browser.signOut();
  const link = await linkFor(server, 'acme');
  const guest = new Browser(server);
  expect((await guest.post('/console/api/session', { link: link.fragment.slice('link='.length) })).status).toBe(200);
  await guest.signOut();
  const revoked = await server.createClient('acme', { name: 'Other' });
  await revokeClient(server.database.db, revoked.clientId);
  await revokeClient(server.database.db, revoked.clientId);

  const accesses = await accessesOf('acme', token);
  expect(accesses.map(({ kind, client: of, name, details, count }) => ({ kind, of, name, details, count }))).toEqual([
    { kind: 'client_made', of: client.clientId, name: 'Jane Doe', details: { scope: client.scope }, count: 1 },
    { kind: 'signed_in', of: client.clientId, name: 'Jane Doe', details: { by: 'secret' }, count: 1 },
    { kind: 'signed_out', of: client.clientId, name: 'Jane Doe', details: {}, count: 1 },
    { kind: 'link_made', of: link.clientId, name: 'Guest', details: { scope: link.scope }, count: 1 },
    { kind: 'signed_in', of: link.clientId, name: 'Guest', details: { by: 'link' }, count: 1 },
    { kind: 'signed_out', of: link.clientId, name: 'Guest', details: {}, count: 1 },
    { kind: 'client_made', of: revoked.clientId, name: 'Other', details: { scope: revoked.scope }, count: 1 },
    { kind: 'client_revoked', of: revoked.clientId, name: 'Other', details: {}, count: 1 },
  ]);
  for (const { at } of accesses) expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(600_000);
  expect(JSON.stringify(accesses)).not.toContain(client.clientSecret);
});

test('refusals of a client are one row an hour with a count; those of no client are not recorded', async () => {
  const { client, token } = await newTenant('guessed');
  for (let time = 0; time < 3; time += 1) expect(await guess(client.clientId, 'wrong')).toBe(401);
  expect((await new Browser(server).signIn({ ...client, clientSecret: 'wrong' })).status).toBe(401);
  const revoked = await server.createClient('guessed', { name: 'Revoked' });
  await revokeClient(server.database.db, revoked.clientId);
  expect(await guess(revoked.clientId, revoked.clientSecret)).toBe(401);
  expect(await guess('guessed.00000000000000000000', 'wrong')).toBe(401);
  expect((await new Browser(server).post('/console/api/session', { link: `guessed.${'a'.repeat(43)}` })).status).toBe(
    401,
  );

  const refusals = await accessesOf('guessed', token, 'kind:refused');
  // The requests may straddle the end of an hour.
  const countOf = (of: NewClient, why: string) =>
    refusals
      .filter(({ client: id, details }) => id === of.clientId && details.why === why)
      .reduce((sum, { count }) => sum + count, 0);
  expect(countOf(client, 'secret')).toBe(4);
  expect(countOf(revoked, 'revoked')).toBe(1);
  expect(refusals.reduce((sum, { count }) => sum + count, 0)).toBe(5);
  expect(refusals.length).toBeLessThanOrEqual(4);
  for (const { at } of refusals) expect(at).toMatch(/:00:00\.000Z$/);
});

test('a sign-in and its end have the address, the program and the session; a download has the first two', async () => {
  const { client, token } = await newTenant('located');
  const browser = new Browser(server);
  const program = `Mozilla/5.0 ${'x'.repeat(300)}`;
  const { clientId, clientSecret } = client;
  const headers = { 'user-agent': program, 'x-forwarded-for': '203.0.113.9' };
  await browser.post('/console/api/session', { clientId, clientSecret }, headers);
  await browser.signOut();
  const [, first, last] = await accessesOf('located', token);
  // The test's server trusts a proxy on this machine.
  expect(first).toMatchObject({ address: '203.0.113.9', program: program.slice(0, 200) });
  expect(first?.session).toMatch(/^[0-9a-f]{16}$/);
  expect(last?.session).toBe(first?.session);
  expect(await guess(client.clientId, 'wrong')).toBe(401);
  expect((await accessesOf('located', token, 'kind:refused'))[0]).toMatchObject({ address: '127.0.0.1' });
  const [made] = await accessesOf('located', token, 'kind:client_made');
  expect([made?.address, made?.program, made?.session]).toEqual([undefined, undefined, undefined]);
});

describe('reads per hour', () => {
  const readsOf = async (tenant: string, token: string) => {
    await server.context.countedReads.store();
    return await accessesOf(tenant, token, 'kind:read');
  };
  /** The total of rows that the start of an hour may have split. */
  const sumOf = (rows: readonly Access[]) => {
    const details: Record<string, number> = {};
    for (const row of rows)
      for (const [kind, count] of Object.entries(row.details)) details[kind] = (details[kind] ?? 0) + Number(count);
    return { details, count: rows.reduce((sum, { count }) => sum + count, 0) };
  };

  test('the row of a client counts its requests by what they read, with address and program; refused ones do not count', async () => {
    const { client, token } = await newTenant('reader');
    const read = (path: string, init: object = {}) =>
      server.call(path, { token, headers: { 'user-agent': 'reader/1.0' }, ...init });
    const lists = ['/changelog/reader/changelogs', '/changelog/reader/changelogs?pageSize=1'];
    for (const path of lists) expect((await read(path)).status).toBe(200);
    expect((await read('/changelog/reader/names?field=entity')).status).toBe(200);
    expect((await read('/changelog/reader/changelogs?q=%28')).status).toBe(400);
    expect((await read('/changelog/another/changelogs')).status).toBe(403);
    // Other requests of the client read no history.
    expect((await read('/usage/reader')).status).toBe(200);
    const rows = await readsOf('reader', token);
    expect(sumOf(rows)).toEqual({ details: { changelogs: 2, names: 1 }, count: 3 });
    for (const row of rows)
      expect(row).toMatchObject({
        client: client.clientId,
        name: 'Jane Doe',
        address: '127.0.0.1',
        program: 'reader/1.0',
      });
    for (const { at } of rows) expect(at).toMatch(/:00:00\.000Z$/);

    // The list itself was read, and later requests join the row, with their own program.
    await read('/changelog/reader/names?field=entity', { headers: { 'user-agent': 'later/2.0' } });
    const after = await readsOf('reader', token);
    expect(sumOf(after)).toEqual({ details: { accesses: 1, changelogs: 2, names: 2 }, count: 5 });
    expect(after.at(-1)?.program).toBe('later/2.0');
  });

  test('a key has a row of its own, and a viewer token counts for its maker, without the address of the viewer', async () => {
    const { client, token } = await newTenant('holder');
    const key = await createKey(server.context.db, { tenant: 'holder', scopes: ['changelog.changelog_read'] });
    const initialize = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
    const answer = await server.call('/mcp/holder', {
      token: key.key,
      headers: { accept: 'application/json, text/event-stream' },
      json: initialize,
    });
    expect(answer.status).toBe(200);
    await answer.text();
    const made = await server.call('/changelog/holder/viewer-tokens', {
      token,
      json: { q: 'entity:order', subject: 'customer-1' },
    });
    expect(made.status).toBe(201);
    const viewer = (await made.json()) as { token: string };
    expect((await server.call('/viewer/holder/histogram', { token: viewer.token })).status).toBe(200);
    const rows = await readsOf('holder', token);
    const ofKey = rows.filter(({ client: id }) => id === key.id);
    const ofClient = rows.filter(({ client: id }) => id === client.clientId);
    expect(sumOf(ofKey)).toEqual({ details: { mcp: 1 }, count: 1 });
    expect(sumOf(ofClient)).toEqual({ details: { viewer: 1 }, count: 1 });
    for (const { address, program } of ofClient) expect([address, program]).toEqual([undefined, undefined]);
  });

  test('reads of a deleted tenant are dropped, and those of others in the same batch are stored', async () => {
    const { token } = await newTenant('staying');
    const { token: gone } = await newTenant('leaving');
    for (const [tenant, of] of [
      ['staying', token],
      ['leaving', gone],
    ] as const)
      expect((await server.call(`/changelog/${tenant}/changelogs`, { token: of })).status).toBe(200);
    await deleteTenant(server.database.db, 'leaving');
    expect(sumOf(await readsOf('staying', token)).details).toEqual({ changelogs: 1 });
  });
});

test.each([
  ['GET', '/changelog/:tenant/changelogs', 'changelogs'],
  ['HEAD', '/changelog/:tenant/facets', 'facets'],
  ['POST', '/changelog/:tenant/changelogs/search', 'changelogs'],
  ['GET', '/changelog/:tenant/log/tile/:level/*', 'log'],
  ['GET', '/viewer/:tenant/entries', 'viewer'],
  ['POST', '/mcp/:tenant', 'mcp'],
  ['GET', '/mcp/:tenant', undefined],
  ['POST', '/changelog/:tenant/views', undefined],
  ['DELETE', '/changelog/:tenant/views/:id', undefined],
  ['GET', '/usage/:tenant', undefined],
])('%s %s is a read of %s', (method, route, kind) => {
  expect(kindOfRead(method, route)).toBe(kind);
});

test('downloads of exports are listed with their client; HEAD and refused requests are not', async () => {
  const { token } = await newTenant('exporter');
  const auditor = await server.createClient('exporter', {
    name: 'Auditor',
    scope: 'changelog.changelog_read',
    restriction: readRestriction([{ query: 'entity:order', hide: [] }]),
  });
  const own = await server.tokenOf(auditor);
  const call = (path: string, init?: RequestInit) => server.call(path, { ...init, token: own } as never);
  const job = await startExport(call, 'exporter', { q: '', format: 'CSV' });
  const { metadata } = await endOfJob(call, 'exporter', job);
  const content = `/ai-service/exporter/jobs/${job}/content`;
  expect((await server.call(content, { token: own, method: 'HEAD' })).status).toBe(200);
  expect((await call(`/ai-service/exporter/jobs/00000000-0000-4000-8000-000000000000/content`)).status).toBe(404);
  expect(await accessesOf('exporter', token, 'kind:export_downloaded')).toEqual([]);

  await contentOf(call, 'exporter', job);
  expect(await accessesOf('exporter', token, 'kind:export_downloaded name:Auditor')).toMatchObject([
    { client: auditor.clientId, name: 'Auditor', details: { job, format: 'CSV', bytes: metadata.bytes }, count: 1 },
  ]);
  // A client that sees only a part of the history may not list accesses.
  expect((await call('/changelog/exporter/accesses')).status).toBe(403);
});

test('the list needs its own scope and tenant, and is paged like other lists', async () => {
  const { client, token } = await newTenant('paged');
  await server.createClient('paged', { name: 'Second' });
  await server.createClient('paged', { name: 'Third' });
  const path = '/changelog/paged/accesses?pageSize=2&sort=_id:DESC&fields=name';
  const first = await server.call(path, { token, headers: { 'x-total-count': 'true' } });
  expect(await first.json()).toMatchObject([{ name: 'Third' }, { name: 'Second' }]);
  expect(first.headers.get('x-total-count')).toBe('3');
  const second = await server.call(`${path}&next=${first.headers.get('x-next-cursor')}`, { token });
  expect(await second.json()).toMatchObject([{ name: 'Jane Doe' }]);
  expect(second.headers.get('x-next-cursor')).toBeNull();

  const every = client.scope.split(' ').filter((scope) => scope !== 'changelog.access_read');
  const without = await server.tokenOf(client, every.join(' '));
  expect((await server.call('/changelog/paged/accesses', { token: without })).status).toBe(403);
  const foreign = await server.token('elsewhere');
  expect((await server.call('/changelog/paged/accesses', { token: foreign })).status).toBe(403);
});

test('an access is deleted after 400 days, not before', async () => {
  const { token } = await newTenant('old');
  expect(accessRetentionDays).toBe(400);
  await server.database.pool.query(
    `insert into access_event (tenant, id, at, kind, client, name, details)
       select 'old', lpad(to_hex((extract(epoch from at) * 1000000)::bigint), 14, '0') || '-' || n, at, 'signed_in', 'old.x', days::text, '{}'
         from (values (399), (401)) as ages (days), generate_series(1, 1500) as n, lateral (select now() - days * interval '1 day' as at) a`,
  );
  await dropOldAccesses(server.database.db);
  const total = async (q: string) => {
    const response = await server.call(`/changelog/old/accesses?pageSize=1&q=${q}`, {
      token,
      headers: { 'x-total-count': 'true' },
    });
    return response.headers.get('x-total-count');
  };
  expect([await total('name:%22399%22'), await total('name:%22401%22')]).toEqual(['1500', '0']);
});
