import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessesKept, dropOldAccesses } from '../../../src/access/accesses/store.ts';
import { type NewClient, revokeClient } from '../../../src/access/oauth/clients.ts';
import { readRestriction } from '../../../src/history/ask/restriction.ts';
import { Browser } from '../../support/server/browser.ts';
import { linkFor } from '../../support/server/console-sessions.ts';
import { contentOf, endOfJob, startExport } from '../../support/server/jobs.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';

interface Access {
  id: string;
  at: string;
  kind: string;
  client: string;
  name: string;
  details: Record<string, unknown>;
  count: number;
}

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
});

afterAll(async () => {
  await server.close();
});

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

test('who signed in and out, links, clients that were made and revoked are listed with their time, also after their clients have gone', async () => {
  const { client, token } = await newTenant('acme');
  const browser = new Browser(server);
  await browser.signIn(client);
  await browser.signOut();
  const link = await linkFor(server, 'acme');
  const guest = new Browser(server);
  expect((await guest.post('/console/api/session', { link: link.fragment.slice('link='.length) })).status).toBe(200);
  await guest.signOut();
  const other = await server.createClient('acme', { name: 'Other' });
  await revokeClient(server.database.db, other.clientId);
  await revokeClient(server.database.db, other.clientId);

  const accesses = await accessesOf('acme', token);
  expect(accesses.map(({ kind, client: of, name, details, count }) => ({ kind, of, name, details, count }))).toEqual([
    { kind: 'client_made', of: client.clientId, name: 'Jane Doe', details: { scope: client.scope }, count: 1 },
    { kind: 'signed_in', of: client.clientId, name: 'Jane Doe', details: { by: 'secret' }, count: 1 },
    { kind: 'signed_out', of: client.clientId, name: 'Jane Doe', details: {}, count: 1 },
    { kind: 'link_made', of: link.clientId, name: 'Guest', details: { scope: link.scope }, count: 1 },
    { kind: 'signed_in', of: link.clientId, name: 'Guest', details: { by: 'link' }, count: 1 },
    { kind: 'signed_out', of: link.clientId, name: 'Guest', details: {}, count: 1 },
    { kind: 'client_made', of: other.clientId, name: 'Other', details: { scope: other.scope }, count: 1 },
    { kind: 'client_revoked', of: other.clientId, name: 'Other', details: {}, count: 1 },
  ]);
  for (const { at } of accesses) expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(600_000);
  expect(JSON.stringify(accesses)).not.toContain(client.clientSecret);
});

test('refusals of a client are a row an hour with a count; those of no client are nowhere', async () => {
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
  // The hour may have ended meanwhile.
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

test('who downloaded which export is listed, and neither HEAD nor what was refused', async () => {
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
  // Whoever sees a part of the history learns nothing of the others.
  expect((await call('/changelog/exporter/accesses')).status).toBe(403);
});

test('it is for its scope and its tenant alone, and paged as the other lists', async () => {
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

test('an access is deleted after 400 days, and not before', async () => {
  const { token } = await newTenant('old');
  expect(accessesKept).toBe(400);
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
