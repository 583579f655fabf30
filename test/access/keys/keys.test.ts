import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { createKey, listKeys, maxModels, revokeKey } from '../../../src/access/keys/key-store.ts';
import { keyPattern, newKey, readKey, writeKey } from '../../../src/access/keys/key-text.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Browser } from '../../support/server/browser.ts';
import { annals } from '../../support/server/command.ts';
import { routesOf } from '../../support/server/routes-of.ts';
import { startTestServer } from '../../support/server/server.ts';

const scopes = ['changelog.changelog_read'];
let passed = 0;

const server = closeAfterAll(await startTestServer({ clock: { now: () => Date.now() + passed } }));
await server.createTenant('acme');
await server.createTenant('beta');

const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };

async function callMcp(key: string, tenant = 'acme'): Promise<number> {
  const response = await fetch(`${server.baseUrl}/mcp/${tenant}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(list),
  });
  await response.body?.cancel();
  return response.status;
}

test('a key parses as it was issued; a text that differs in one character is not a key', () => {
  const key = newKey();
  const text = writeKey(key);
  expect(text).toMatch(keyPattern);
  expect(readKey(text)).toEqual(key);
  for (let place = 7; place < text.length; place += 1) {
    const replacement = text.charAt(place) === 'a' ? 'b' : 'a';
    expect(readKey(text.slice(0, place) + replacement + text.slice(place + 1)), `${place}`).toBeUndefined();
  }
  for (const wrong of ['', 'annals_', `${text}x`, ` ${text}`, text.replace('annals', 'ANNALS')])
    expect(readKey(wrong)).toBeUndefined();
});

test('the MCP server takes a key of its tenant, and notes its use; no other tenant does', async () => {
  const { key, ...made } = await createKey(server.context.db, { tenant: 'acme', scopes, name: 'Claude' });
  expect(made).toMatchObject({ name: 'Claude', scope: scopes[0], expiresAt: null, revokedAt: null, usedAt: null });
  expect(await callMcp(key)).toBe(200);
  expect(await callMcp(key, 'beta')).toBe(401);
  await expect.poll(async () => (await listKeys(server.context.db, 'acme'))[0]?.usedAt).not.toBeNull();
  const { rows } = await sql`select from access_key where access_key::text like ${`%${readKey(key)?.secret}%`}`.execute(
    server.database.db,
  );
  expect(rows).toHaveLength(0);
  expect(server.logLines.join('\n')).not.toContain(readKey(key)?.secret);
});

test('nothing else accepts a key: no operation, no token endpoint, no Basic, no session of the console', async () => {
  const { key, id } = await createKey(server.context.db, { tenant: 'acme', scopes });
  const secret = key.split('_')[2] ?? '';
  const taking = new Set<string>();
  for (const { method, path } of routesOf(server.app)) {
    if (!path.includes(':tenant')) continue;
    const target = path.replace(':tenant', 'acme').replaceAll(/:\w+/g, '1');
    const { status, body } = await server.call(target, { token: key, method });
    await body?.cancel();
    if (status !== 401) taking.add(path);
  }
  expect([...taking].filter((path) => !/^\/(?:mcp|openai|anthropic)\/:tenant(?:\/|$)/.test(path))).toEqual([]);
  expect(taking).toContain('/mcp/:tenant');
  for (const [clientId, clientSecret] of [
    [id, secret],
    [id, key],
    [`acme.${id}`, secret],
    [key, key],
  ] as const) {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
    });
    expect((await server.call('/oauth/token', { method: 'POST', body })).status).toBe(401);
    expect((await new Browser(server).signIn({ clientId, clientSecret })).status).toBe(401);
  }
});

test('a key that is revoked or has expired stops; revoking again is no error', async () => {
  const { key, id } = await createKey(server.context.db, { tenant: 'acme', scopes, expiry: 60_000 });
  expect(await callMcp(key)).toBe(200);
  passed = 61_000;
  expect(await callMcp(key)).toBe(401);
  passed = 0;
  expect(await callMcp(key)).toBe(200);
  for (let count = 0; count < 2; count += 1) expect(await revokeKey(server.context.db, 'acme', id)).toBe(true);
  await expect.poll(() => callMcp(key)).toBe(401);
  expect(await revokeKey(server.context.db, 'beta', id)).toBe(false);
  // Its reads are recorded with a delay, on a slow machine before the revocation.
  const { rows } = await sql`select kind, name from access_event
    where tenant = 'acme' and client = ${id} and kind like 'key%' order by id`.execute(server.database.db);
  expect(rows).toEqual(['key_made', 'key_revoked'].map((kind) => ({ kind, name: id })));
});

test('the last use counts by the minute', async () => {
  const { key, id } = await createKey(server.context.db, { tenant: 'beta', scopes });
  const usedAt = async () => (await listKeys(server.context.db, 'beta')).find((listed) => listed.id === id)?.usedAt;
  expect(await callMcp(key, 'beta')).toBe(200);
  await expect.poll(usedAt).not.toBeNull();
  const first = await usedAt();
  expect(await callMcp(key, 'beta')).toBe(200);
  expect(await usedAt()).toBe(first);
});

test('a key with a restriction is listed with it', async () => {
  const restriction = readRestriction([{ query: 'entity:order', hide: ['card'] }]);
  const { key } = await createKey(server.context.db, { tenant: 'beta', scopes, restriction });
  expect(await callMcp(key, 'beta')).toBe(200);
  expect((await listKeys(server.context.db, 'beta')).at(-1)).toMatchObject({ query: 'entity:order', hide: ['card'] });
});

const calling = ['ai.completion_manage'];
const modelsOf = (count: number) => Array.from({ length: count }, (_none, place) => `openai/m${place}`);

test('a key has 100 models at most, which the command takes with blanks or commas between them', async () => {
  const { models } = await createKey(server.context.db, {
    tenant: 'acme',
    scopes: calling,
    models: modelsOf(maxModels),
  });
  expect(models).toEqual(modelsOf(100));
  const flags = ['--scope', 'ai.completion_manage', '--models', 'openai/gpt-4.1, self_hosted/llama 3'];
  const environment = { DATABASE_URL: server.database.url, ANNALS_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') };
  const refused = await annals(['key', 'create', '--tenant', 'acme', ...flags], environment);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('must be written as')]);
  flags[3] = 'openai/gpt-4.1, self_hosted/llama';
  const made = await annals(['key', 'create', '--tenant', 'acme', ...flags], environment);
  expect(JSON.parse(made.stdout)).toMatchObject({ models: ['openai/gpt-4.1', 'self_hosted/llama'] });
});

test('a key may have an end user, which the command sets and lists show', async () => {
  const environment = { DATABASE_URL: server.database.url, ANNALS_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') };
  const user = 'ü'.repeat(200);
  const flags = ['--scope', 'ai.completion_manage', '--user', user];
  const made = JSON.parse((await annals(['key', 'create', '--tenant', 'acme', ...flags], environment)).stdout);
  expect(made.user).toBe(user);
  expect((await listKeys(server.context.db, 'acme')).find(({ id }) => id === made.id)?.user).toBe(user);
});

test.each<[string, Partial<Parameters<typeof createKey>[1]>, RegExp]>([
  ['a scope that no route takes a key for', { scopes: ['usage.usage_read'] }, /cannot have usage\.usage_read/],
  ['no scope', { scopes: [] }, /at least one scope/],
  ['a tenant that is not there', { tenant: 'gamma' }, /no tenant gamma/],
  ['models and no scope to call them with', { models: ['openai/gpt-4.1'] }, /need the scope ai\.completion_manage/],
  ['no model', { scopes: calling, models: [] }, /must be 1 to 100/],
  ['101 models', { scopes: calling, models: modelsOf(maxModels + 1) }, /must be 1 to 100/],
  [
    'a model without its provider',
    { scopes: calling, models: ['gpt-4.1'] },
    /must be written as openai\/…, anthropic\/…/,
  ],
  ['a model of an unknown provider', { scopes: calling, models: ['openai/a', 'nobody/b'] }, /must be written as/],
  ['a user and no scope to call models with', { user: 'jane' }, /needs the scope ai\.completion_manage/],
  ['each user', { scopes: calling, user: '*' }, /must not be \*/],
  ['an empty user', { scopes: calling, user: '' }, /must have 1 to 200 characters/],
  ['a user of 201 characters', { scopes: calling, user: 'u'.repeat(201) }, /must have 1 to 200 characters/],
  ['a user with a control character', { scopes: calling, user: 'a\0' }, /no control characters/],
  ['a reserved name', { name: 'system' }, /name must not be system/],
])('no key is made with %s', async (_what, overrides, message) => {
  await expect(createKey(server.context.db, { tenant: 'acme', scopes, ...overrides })).rejects.toThrow(message);
});

test('guessing keys is slowed down; a key that has been accepted before is not', async () => {
  const { key } = await createKey(server.context.db, { tenant: 'acme', scopes });
  expect(await callMcp(key)).toBe(200);
  const statuses: number[] = [];
  for (let count = 0; count < 110 && statuses.at(-1) !== 429; count += 1)
    statuses.push(await callMcp(writeKey(newKey())));
  expect(statuses.at(-1)).toBe(429);
  expect(await callMcp(key)).toBe(200);
});
