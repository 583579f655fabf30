import { writeFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { readKey } from '../../../src/access/keys/key-text.ts';
import { revokeClient } from '../../../src/access/oauth/clients.ts';
import { maxUnconfirmed } from '../../../src/access/oauth/makers.ts';
import { maxKeyLifetime, maxKeysOfPerson } from '../../../src/access/sessions/key-routes.ts';
import { createLink, linkLifetime } from '../../../src/access/sessions/links.ts';
import { checksEvery } from '../../../src/access/sessions/people-sessions.ts';
import { keysLifetime } from '../../../src/access/sign-in/provider.ts';
import { countSessions } from '../../../src/context/installation-figures.ts';
import { AnnalsError } from '../../../src/core/errors.ts';
import { readRecorders } from '../../../src/history/search/names/recorder-store.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { scopes } from '../../../src/http/scopes.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Browser } from '../../support/server/browser.ts';
import { type Call, contentOf, endOfJob, startExport } from '../../support/server/jobs.ts';
import { PeopleServer, publicUrl, rulesOf, sessionOf } from '../../support/server/people.ts';

let passed = 0;
/** As `passed`, of the clock that never steps back. */
let waited = 0;

const usual = rulesOf(
  { claims: { groups: 'all' }, tenants: ['acme'], scopes },
  {
    claims: { groups: 'readers' },
    tenants: ['acme', 'beta'],
    scopes: ['changelog.changelog_read'],
    query: 'entity:configuration',
    hide: ['value'],
  },
);

const people = closeAfterAll(
  await PeopleServer.start(usual, { now: () => Date.now() + passed, elapsed: () => performance.now() + waited }),
);
await people.server.createTenant('acme');
await people.server.createTenant('beta');

beforeEach(async () => {
  // A check asks the provider about each session that there is.
  await sql`delete from console_session`.execute(people.server.database.db);
  people.provider.claims = { sub: 'u-1 "quoted"', name: 'Jane Doe', groups: ['all'] };
  people.provider.endedSubjects.clear();
  people.provider.givesRefreshTokens = true;
  people.provider.userInfo = undefined;
  people.provider.userInfoFailures = 0;
  people.provider.keyFailures = 0;
  await writeFile(people.rulesFile, usual);
});

type Step = readonly [operation: string, method: string, path: string, body?: unknown];

const type = '/schema/acme/custom-entities';
const instance = `${type}/CLAIM/instances`;
const configuration = '/configuration/acme/configurations';
const agent = '/ai-service/acme/agentic/agents/desk';
const llmConfig = { provider: 'openai', model: 'gpt-5.4-mini', apiKey: 'sk-secret' };
const target = { type: 'webhook', url: 'https://receiver.example/hook' };

/**
 * Every operation that writes a document, so that it records one change. `made` is the id that the step before it was
 * answered.
 */
const writes = (made: string): readonly Step[] => [
  ['createCustomEntityType', 'POST', type, { id: 'CLAIM', name: { en: 'Claim' } }],
  ['putCustomEntityType', 'PUT', `${type}/CLAIM`, { name: { en: 'Claims' } }],
  ['createInstance', 'POST', instance, { id: 'c1', amount: 1 }],
  ['putInstance', 'PUT', `${instance}/c1`, { amount: 2 }],
  ['patchInstance', 'PATCH', `${instance}/c1`, [{ op: 'replace', path: '/amount', value: 3 }]],
  ['deleteInstance', 'DELETE', `${instance}/c1`],
  ['deleteCustomEntityType', 'DELETE', `${type}/CLAIM`],
  ['createConfigurations', 'POST', configuration, [{ key: 'k', value: 1 }]],
  ['replaceConfiguration', 'PUT', `${configuration}/k`, { value: 2 }],
  ['deleteConfiguration', 'DELETE', `${configuration}/k`],
  ['putAgent', 'PUT', agent, { name: { en: 'Desk' }, llmConfig }],
  ['patchAgent', 'PATCH', agent, [{ op: 'replace', path: '/name/en', value: 'Other desk' }]],
  ['deleteAgent', 'DELETE', agent],
  ['createView', 'POST', '/changelog/acme/views', { name: 'Mine', q: 'entity:order' }],
  ['putView', 'PUT', `/changelog/acme/views/${made}`, { name: 'Ours', q: 'entity:order' }],
  ['deleteView', 'DELETE', `/changelog/acme/views/${made}`],
  ['createBudget', 'POST', '/usage/acme/budgets', { id: 'b', period: 'day', limitTokens: 1 }],
  ['putBudget', 'PUT', '/usage/acme/budgets/b', { period: 'day', limitTokens: 2 }],
  ['deleteBudget', 'DELETE', '/usage/acme/budgets/b'],
  ['createSubscription', 'POST', '/changelog/acme/subscriptions', { name: 'Out', target }],
  ['putSubscription', 'PUT', `/changelog/acme/subscriptions/${made}`, { name: 'Out there', target }],
  ['rotateSubscriptionKey', 'POST', `/changelog/acme/subscriptions/${made}/rotate`],
  ['deleteSubscription', 'DELETE', `/changelog/acme/subscriptions/${made}`],
];

/** Operations that write no document and record nothing. */
const recordNothing = [
  ...['chat', 'chatAsync', 'chatStream', 'createCompletion', 'createJob', 'createViewerToken'],
  ...[
    'createClient',
    'narrowClient',
    'rotateClient',
    'deleteClient',
    'createKey',
    'narrowKey',
    'rotateKey',
    'deleteKey',
  ],
  // It records what Annals finds, under the name of Annals.
  'readMcpTools',
  ...['deleteGrant', 'deleteJob', 'deleteParkedChanges', 'deleteSession', 'endSessions'],
  ...['issueToken', 'pauseSubscription', 'replaySubscription', 'resumeSubscription', 'testSubscription'],
  'streamCompletion',
];

async function send(
  browser: Browser,
  path: string,
  method: string,
  body: unknown,
): Promise<{ text: string; requestId: string | null }> {
  const answer = await browser.call(`/console/api${path}`, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  expect([method, path, answer.status, text]).toEqual([method, path, expect.toSatisfy(isSuccess), text]);
  return { text, requestId: answer.headers.get('x-request-id') };
}

const isSuccess = (status: number) => status >= 200 && status < 300;

/** The changes of the tenant, newest first, with their recorders. */
async function recorded(token: string) {
  const path = '/changelog/acme/changelogs?size=100&context=true';
  const answer = await people.server.call(path, { token });
  const { items } = (await answer.json()) as {
    items: { actor: string; actorId?: string; correlationId?: string; recordedBy: object }[];
  };
  return items;
}

test('a person who chats is known to the agent, which reads the history for them', async () => {
  const { server, provider } = people;
  const run = vi.spyOn(server.context.agents.chats, 'run');
  run.mockRejectedValueOnce(new AnnalsError('conflict_resource', 'The agent is disabled.'));
  const { browser } = await people.signIn();
  const body = JSON.stringify({ agentId: 'desk', message: 'Who changed it?' });
  const answer = await browser.call('/console/api/ai-service/acme/agentic/chat', { method: 'POST', body });
  expect(answer.status).toBe(409);
  const person = { issuer: provider.issuer, subject: 'u-1 "quoted"' };
  expect(run.mock.calls.map(([{ credentials }]) => credentials)).toMatchObject([{ clientName: 'Jane Doe', person }]);
  run.mockRestore();
});

test('whatever a person writes bears their name, their id and that of the request', async () => {
  const { server, provider } = people;
  const { paths } = JSON.parse(server.app.openApiText()) as {
    paths: Record<string, Record<string, { operationId?: string }>>;
  };
  const operations = Object.values(paths).flatMap((path) =>
    Object.entries(path).flatMap(([method, { operationId }]) =>
      method === 'get' || operationId === undefined || /^search/.test(operationId) ? [] : [operationId],
    ),
  );
  expect([...writes('').map(([operation]) => operation), ...recordNothing].sort()).toEqual(operations.sort());

  const { browser } = await people.signIn();
  let made = '';
  const requests: (string | null)[] = [];
  for (const place of writes('').keys()) {
    const [operation, method, path, body] = writes(made)[place] ?? [];
    const { text, requestId } = await send(browser, path ?? '', method ?? '', body);
    requests.unshift(requestId);
    if (operation === 'createView' || operation === 'createSubscription') made = JSON.parse(text).id;
  }
  const token = await server.token('acme', { scope: scopes.join(' ') });
  const shown = await recorded(token);
  const by = { way: 'service', iss: provider.issuer, sub: 'u-1 "quoted"' };
  expect(
    shown.map(({ actor, actorId, correlationId, recordedBy }) => ({ actor, actorId, correlationId, recordedBy })),
  ).toEqual(requests.map((correlationId) => ({ actor: 'Jane Doe', actorId: by.sub, correlationId, recordedBy: by })));
  expect(new Set(requests).size).toBe(requests.length);
  const call: Call = (path, init = {}) => server.call(path, { token, ...init });
  for (const [format, text] of [
    ['NDJSON', JSON.stringify(by)],
    ['CSV', `"${JSON.stringify(by).replaceAll('"', '""')}"`],
  ] as const) {
    const job = await startExport(call, 'acme', { q: 'actor:"Jane Doe"', format, context: true });
    await endOfJob(call, 'acme', job);
    expect((await contentOf(call, 'acme', job)).split(text)).toHaveLength(writes('').length + 1);
  }

  // A client's write is recorded as the service's, and without the context no provider of people is shown.
  const answer = await server.call(configuration, { token, json: [{ key: 'by a client', value: 1 }] });
  expect(answer.status).toBe(201);
  expect((await recorded(token))[0]?.recordedBy).toEqual({ way: 'service' });
  const plain = await server.call('/changelog/acme/changelogs?size=100', { token });
  expect(await plain.text()).not.toContain(provider.issuer);

  // The list of recorders has the service once, however many people write, folded or not.
  const ways = async () =>
    (await readRecorders(server.database.db, 'acme')).recorders.map(({ way, by: name }) => [way, name]);
  expect(await ways()).toEqual([['service', null]]);
  await foldHistory(server.database.db, 'acme');
  expect(await ways()).toEqual([['service', null]]);
});

const keysPath = '/console/api/session/keys';

interface MadeKey {
  id: string;
  key: string;
  name: string;
  scope: string;
  expiresAt: string;
}

async function makeKey(browser: Browser, body: object = {}) {
  const answer = await browser.post(keysPath, body);
  return { status: answer.status, body: (await answer.json()) as MadeKey & { message: string } };
}

async function keysOf(browser: Browser): Promise<{ id: string; usedAt: string | null }[]> {
  return ((await (await browser.call(keysPath)).json()) as { keys: { id: string; usedAt: string | null }[] }).keys;
}

/** The answer of the MCP tool to the key, once cached states of the process have expired. */
async function search(key: string, tenant = 'acme'): Promise<{ status: number; text: string }> {
  waited += 5_000;
  const response = await fetch(`${people.server.baseUrl}/mcp/${tenant}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'search_changes', arguments: { q: '', size: 50 } },
    }),
  });
  return { status: response.status, text: await response.text() };
}

/** A reader, of their own. */
async function signInReader(subject: string) {
  people.provider.claims = { sub: subject, name: 'Rita Reader', groups: ['readers'] };
  return (await people.signIn()).browser;
}

async function accessesOf(subject: string) {
  const token = await people.server.token('acme');
  const path = `/changelog/acme/accesses?pageSize=500&q=subject:${subject}`;
  const accesses = (await (await people.server.call(path, { token })).json()) as Record<string, unknown>[];
  return accesses.map(({ kind, details, name, client }) => ({ kind, details, name, client }));
}

test('a person finds exports of an earlier session, as far as they see as much now, and nobody else does', async () => {
  const rules = (query?: string) =>
    rulesOf({
      claims: { groups: 'all' },
      tenants: ['acme'],
      scopes: ['changelog.changelog_read'],
      ...(query !== undefined && { query }),
    });
  const signIn = async () => {
    const { browser } = await people.signIn();
    const call: Call = (path, init) => browser.call(`/console/api${path}`, init as object);
    return { browser, call };
  };
  const find = async (job: string) => {
    const { call } = await signIn();
    const list = (await (await call('/ai-service/acme/jobs')).json()) as { id: string }[];
    const { status } = await call(`/ai-service/acme/jobs/${job}/content`);
    return { status, isListed: list.some(({ id: listed }) => listed === job) };
  };
  await writeFile(people.rulesFile, rules());
  const first = await signIn();
  const id = await startExport(first.call, 'acme', { q: 'entity:none', format: 'NDJSON' });
  expect((await endOfJob(first.call, 'acme', id)).status).toBe('success');
  await first.browser.signOut();
  expect(await find(id)).toEqual({ status: 200, isListed: true });
  await writeFile(people.rulesFile, rules('entity:configuration'));
  expect(await find(id)).toEqual({ status: 404, isListed: false });
  await writeFile(people.rulesFile, rules());
  people.provider.claims = { sub: 'u-2', name: 'Jane Doe', groups: ['all'] };
  expect(await find(id)).toEqual({ status: 404, isListed: false });
  people.provider.claims = { sub: 'u-1 "quoted"', name: 'Jane Smith', groups: ['all'] };
  const { call } = await signIn();
  expect((await call(`/ai-service/acme/jobs/${id}`, { method: 'DELETE' })).status).toBe(204);
});

describe('keys of people', () => {
  test('have the name, the query and the masks of their maker, and are shown once', async () => {
    const browser = await signInReader('u-shown');
    expect((await sessionOf(browser)).body.keyScopes).toEqual(['changelog.changelog_read']);
    const { status, body } = await makeKey(browser);
    expect([status, body]).toMatchObject([
      201,
      { name: 'Rita Reader', scope: 'changelog.changelog_read', query: 'entity:configuration', hide: ['value'] },
    ]);
    expect(Math.round((Date.parse(body.expiresAt) - Date.now()) / 1_000)).toBeCloseTo(maxKeyLifetime, -2);
    const { text } = await search(body.key);
    expect(text).toContain('configuration');
    expect(text).toContain('********');
    expect(text).not.toMatch(/\bagent\b/);
    expect((await search(body.key, 'beta')).status).toBe(401);
    await expect.poll(async () => (await keysOf(browser))[0]?.usedAt).toEqual(expect.any(String));
    const listed = JSON.stringify(await keysOf(browser));
    expect(listed).toContain(body.id);
    expect(listed).not.toContain(readKey(body.key)?.secret);
    expect(people.server.logLines.join('')).not.toContain(readKey(body.key)?.secret);
  });

  test('have scopes that their maker has and a key can have, and last 90 days at most', async () => {
    const browser = await signInReader('u-bounds');
    for (const [body, status] of [
      [{ scopes: ['changelog.changelog_read'], expiresIn: maxKeyLifetime }, 201],
      [{ expiresIn: 60 }, 201],
      [{ expiresIn: maxKeyLifetime + 1 }, 400],
      [{ expiresIn: 59 }, 400],
      [{ expiresIn: 1.5 }, 400],
      [{ expiresIn: '60' }, 400],
      [{ scopes: [] }, 400],
      [{ scopes: ['changelog.changelog_read', 'usage.usage_read'] }, 403],
      [{ scopes: ['changelog.changelog_manage'] }, 403],
      [{ scopes: ['*'] }, 403],
      [{ name: 'Other' }, 400],
      [{ query: '' }, 400],
      [[], 400],
    ] as const) {
      expect([body, (await makeKey(browser, body)).status]).toEqual([body, status]);
    }
    // A manager of the history may read it; a key gets no more than reading.
    const { browser: manager } = await people.signIn();
    expect((await makeKey(manager, { scopes: ['changelog.changelog_manage'] })).status).toBe(403);
  });

  test(`are ${maxKeysOfPerson} at most in a tenant, whatever session made them`, async () => {
    const first = await signInReader('u-many');
    const second = await signInReader('u-many');
    const ids: string[] = [];
    for (let made = 0; made < maxKeysOfPerson - 1; made += 1)
      ids.push((await makeKey(made % 2 === 0 ? first : second)).body.id);
    const both = await Promise.all([makeKey(first), makeKey(second)]);
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
    ids.push(both.find(({ status }) => status === 201)?.body.id ?? '');
    expect(await makeKey(first)).toMatchObject({ status: 409, body: { message: expect.stringContaining('20 keys') } });
    expect((await keysOf(second)).map(({ id }) => id).sort()).toEqual(ids.sort());
    expect((await second.call(`${keysPath}/${ids[0]}`, { method: 'DELETE' })).status).toBe(204);
    expect((await makeKey(first)).status).toBe(201);
  });

  test('are revoked by their maker alone, within five seconds', async () => {
    const browser = await signInReader('u-revoker');
    const { body } = await makeKey(browser);
    const otherBrowser = await signInReader('u-other');
    expect((await otherBrowser.call(`${keysPath}/${body.id}`, { method: 'DELETE' })).status).toBe(404);
    expect((await otherBrowser.call(`${keysPath}/${body.id.toLowerCase()}x`, { method: 'DELETE' })).status).toBe(404);
    expect((await search(body.key)).status).toBe(200);
    expect((await browser.call(`${keysPath}/${body.id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await browser.call(`${keysPath}/${body.id}`, { method: 'DELETE' })).status).toBe(404);
    expect((await search(body.key)).status).toBe(401);
    expect(await keysOf(browser)).toEqual([]);
    const of = { name: 'Rita Reader', client: body.id };
    expect((await accessesOf('u-revoker')).slice(1)).toEqual([
      { kind: 'key_made', details: { scope: 'changelog.changelog_read' }, ...of },
      { kind: 'key_revoked', details: {}, ...of },
    ]);
  });

  test('outlive the session, and end within five minutes after the rules stop admitting their maker', async () => {
    const browser = await signInReader('u-leaver');
    const { body } = await makeKey(browser);
    const count = await countSessions(people.server.database.db);
    await browser.signOut();
    expect(await countSessions(people.server.database.db)).toBe(count - 1);
    expect((await sessionOf(browser)).status).toBe(401);
    await people.check();
    expect((await search(body.key)).status).toBe(200);
    // The key sees what the rules show to its maker.
    const only = { claims: { groups: 'readers' }, tenants: ['acme'], scopes: ['changelog.changelog_read'] };
    await writeFile(people.rulesFile, rulesOf({ ...only, query: 'entity:agent' }));
    await people.check();
    expect((await search(body.key)).text).toMatch(/agent/);
    expect((await search(body.key)).text).not.toMatch(/configuration/);
    await writeFile(people.rulesFile, rulesOf({ ...only, scopes: ['usage.usage_read'] }));
    await people.check();
    expect((await search(body.key)).status).toBe(403);
    await writeFile(people.rulesFile, rulesOf({ ...only, claims: { groups: 'others' } }));
    await people.check();
    expect((await search(body.key)).status).toBe(401);
    const accesses = (await accessesOf('u-leaver')).map(({ kind, details }) => ({ kind, details }));
    expect(accesses.slice(2)).toEqual([
      { kind: 'signed_out', details: {} },
      { kind: 'key_revoked', details: { why: 'rules' } },
    ]);
    const left = sql`select from console_session where subject = 'u-leaver'`.execute(people.server.database.db);
    expect((await left).rows).toHaveLength(0);
  });

  test('end with the account at the provider, also while the session continues', async () => {
    const browser = await signInReader('u-ended');
    const { body } = await makeKey(browser);
    people.provider.endedSubjects.add('u-ended');
    await people.check();
    expect((await search(body.key)).status).toBe(401);
    expect((await accessesOf('u-ended')).at(-1)).toMatchObject({ kind: 'key_revoked', details: { why: 'provider' } });
  });

  test('continue, as the session does, where userinfo fails after the refresh token was replaced', async () => {
    people.provider.claims = { sub: 'u-hiccup', name: 'Rita Reader' };
    people.provider.userInfo = { groups: ['readers'] };
    // The provider's description is read again, which has the endpoint now.
    passed += keysLifetime;
    const { browser } = await people.signIn();
    const { body } = await makeKey(browser);
    people.provider.userInfoFailures = 1;
    await people.check();
    expect(people.provider.userInfoFailures).toBe(0);
    await people.pass(checksEvery);
    await people.server.context.webConsole.peopleSessions.checkPeople();
    expect(people.provider.userInfoFailures).toBe(-1);
    expect((await sessionOf(browser)).status).toBe(200);
    expect((await search(body.key)).status).toBe(200);
    // Userinfo counts again.
    people.provider.userInfo = { groups: [] };
    await people.check();
    expect((await sessionOf(browser)).status).toBe(401);
    expect((await search(body.key)).status).toBe(401);
  });

  test('are suspended while their maker has not been confirmed for the length of a session', async () => {
    const browser = await signInReader('u-unconfirmed');
    const { body } = await makeKey(browser);
    const { client } = (await sessionOf(browser)).body;
    const confirmed = (ago: number) =>
      sql`update oauth_client set confirmed_at = statement_timestamp() - ${ago} * interval '1 millisecond' where client_id = ${client}`;
    await confirmed(maxUnconfirmed).execute(people.server.database.db);
    expect((await search(body.key)).status).toBe(401);
    await people.check();
    expect((await search(body.key)).status).toBe(200);
    await confirmed(maxUnconfirmed - 60_000).execute(people.server.database.db);
    expect((await search(body.key)).status).toBe(200);
  });

  test('outlive a session that expires, until the last of them expires', async () => {
    const browser = await signInReader('u-expired');
    const { body } = await makeKey(browser, { expiresIn: 3_600 });
    const { db } = people.server.database;
    const subject = sql`subject = 'u-expired'`;
    const { sessions } = people.server.context.webConsole;
    await sql`update console_session set expires_at = statement_timestamp() where ${subject}`.execute(db);
    await sessions.upkeep();
    expect((await search(body.key)).status).toBe(200);
    expect((await sessionOf(browser)).status).toBe(401);
    await sql`update access_key set expires_at = statement_timestamp() where ${subject}`.execute(db);
    await sql`update console_session set expires_at = statement_timestamp() where ${subject}`.execute(db);
    await sessions.upkeep();
    expect((await search(body.key)).status).toBe(401);
    const left = sql`select from console_session where ${subject}
      union all select from oauth_client c join access_key k on k.made_by = c.client_id where k.${subject}`;
    expect((await left.execute(db)).rows).toHaveLength(0);
  });

  test('end with the client that an operator revokes', async () => {
    const browser = await signInReader('u-cut');
    const { body } = await makeKey(browser);
    await revokeClient(people.server.database.db, String((await sessionOf(browser)).body.client));
    expect((await search(body.key)).status).toBe(401);
  });

  test('keep their refresh token: another tenant is entered by a sign-in of its own', async () => {
    const browser = await signInReader('u-two');
    const { body } = await makeKey(browser);
    const answer = await browser.post('/console/api/session', { tenant: 'beta' });
    const { signInUrl } = (await answer.json()) as { signInUrl: string };
    expect(signInUrl).toMatch(/^https:\/\/annals\.example\/console\/oidc\?to=/);
    const to = new URL(signInUrl).searchParams.get('to') ?? '';
    const { browser: otherBrowser, location } = await people.signIn(to);
    expect(location).toBe(`${publicUrl}/console/?tenant=beta`);
    expect((await sessionOf(otherBrowser)).body.tenant).toBe('beta');
    await people.check();
    expect((await search(body.key)).status).toBe(200);
  });

  async function afterRenewalBegan<Result>(work: () => Promise<Result>, interrupt: () => Promise<unknown>) {
    const release = people.provider.hold();
    const working = work();
    await expect.poll(() => people.provider.renewals).toBe(1);
    await interrupt();
    release();
    return await working;
  }

  test('and every session end where a person signs out while changing the tenant', async () => {
    const browser = await signInReader('u-gone');
    const answer = await afterRenewalBegan(
      () => browser.post('/console/api/session', { tenant: 'beta' }),
      () => browser.signOut(),
    );
    expect(answer.status).toBe(401);
    const left = sql`select from console_session where subject = 'u-gone'`.execute(people.server.database.db);
    expect((await left).rows).toHaveLength(0);
  });

  test('are not for links, clients, or people without a refresh token', async () => {
    const { server } = people;
    const client = await server.createClient('acme');
    const bySecret = new Browser(server, { publicUrl });
    await bySecret.signIn(client);
    const byLink = new Browser(server, { publicUrl });
    const link = { tenant: 'acme', clientId: client.clientId, lifetime: linkLifetime };
    await byLink.redeem(await server.database.db.transaction().execute((transaction) => createLink(transaction, link)));
    for (const browser of [bySecret, byLink]) {
      expect((await sessionOf(browser)).body).not.toHaveProperty('keyScopes');
      expect((await makeKey(browser)).status).toBe(403);
      expect((await browser.call(keysPath)).status).toBe(403);
      expect((await browser.call(`${keysPath}/x`, { method: 'DELETE' })).status).toBe(403);
    }
    people.provider.givesRefreshTokens = false;
    const unrenewed = await signInReader('u-short');
    expect((await sessionOf(unrenewed)).body).not.toHaveProperty('keyScopes');
    expect(await makeKey(unrenewed)).toMatchObject({
      status: 403,
      body: { message: expect.stringContaining('no refresh token') },
    });
    expect((await makeKey(new Browser(server, { publicUrl }))).status).toBe(401);
  });

  test('are made by this path alone, from a page of the console', async () => {
    const browser = await signInReader('u-path');
    for (const path of [
      '/console/api/session/keys/',
      '/console/api/session//keys',
      '/console/api/Session/keys',
      '/session/keys',
    ])
      expect([path, (await browser.post(path, {})).status]).toEqual([path, 404]);
    expect((await browser.post(keysPath, {}, { origin: 'https://evil.example' })).status).toBe(403);
    expect((await browser.post(keysPath, {}, { 'content-type': 'text/plain' })).status).toBe(415);
    expect(await keysOf(browser)).toEqual([]);
    const { body } = await makeKey(browser);
    for (const path of [keysPath, '/console/api/session']) {
      const answer = await fetch(`${people.server.baseUrl}${path}`, {
        headers: { host: 'annals.example', authorization: `Bearer ${body.key}`, 'sec-fetch-site': 'same-origin' },
      });
      expect(answer.status).toBeGreaterThanOrEqual(400);
    }
  });
});
