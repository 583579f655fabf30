import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { agentKey, callAgentic } from '../../support/server/agents.ts';
import { startTestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const mask = '********';
const llmConfig = { provider: 'openai', model: 'gpt-5.4-mini', apiKey: agentKey };

const server = closeAfterAll(await startTestServer());
const token = await server.token(tenant, { name: 'Jane Doe' });

const call = (method: string, path: string, body?: unknown, as = token) =>
  callAgentic(server, { tenant, token: as, path, method }, body);
const get = async (id: string) => (await call('GET', `/agents/${id}`)).json() as Promise<Record<string, never>>;

test('PUT makes an agent (201 with its id) and replaces it (204); GET shows it with a mask for its key', async () => {
  const body = {
    name: { en: 'Price desk', de: 'Preise' },
    description: { en: 'Knows prices' },
    userPrompt: 'Be brief.',
    triggers: [{ type: 'endpoint' }],
    llmConfig: { ...llmConfig, temperature: 0.5, maxTokens: 100 },
    nativeTools: ['change-history'],
  };
  const made = await call('PUT', '/agents/desk', body);
  expect([made.status, await made.json()]).toEqual([201, { id: 'desk' }]);
  const metadata = { version: 1, createdAt: expect.any(String), modifiedAt: expect.any(String) };
  expect(await get('desk')).toEqual({
    id: 'desk',
    enabled: true,
    ...body,
    llmConfig: { ...body.llmConfig, apiKey: mask },
    metadata,
  });
  const replaced = await call('PUT', '/agents/desk', { ...body, enabled: false });
  expect([replaced.status, await replaced.text()]).toEqual([204, '']);
  expect(await get('desk')).toMatchObject({ enabled: false, metadata: { version: 2 } });
});

test('what GET shows can be sent back as it is: the key stays', async () => {
  await call('PUT', '/agents/round', { name: { en: 'Round' }, llmConfig });
  const shown = await get('round');
  expect((await call('PUT', '/agents/round', shown)).status).toBe(204);
  expect((await get('round')).llmConfig).toEqual({ ...llmConfig, apiKey: mask });
  const { rows } = await server.database.pool.query("select sealed_key from agent where id = 'round'");
  expect(rows[0].sealed_key).toBeInstanceOf(Buffer);
});

test('an old metadata.version is 409, for PUT and PATCH, and of an agent that is not there too', async () => {
  await call('PUT', '/agents/versioned', { name: { en: 'V' }, llmConfig });
  const put = (version: number) =>
    call('PUT', '/agents/versioned', { name: { en: 'V' }, llmConfig, metadata: { version } });
  expect((await put(1)).status).toBe(204);
  const old = await put(1);
  expect([old.status, ((await old.json()) as { type: string }).type]).toEqual([409, 'conflict_resource']);
  const patch = [{ op: 'REPLACE', path: '/metadata/version', value: 1 }];
  expect((await call('PATCH', '/agents/versioned', patch)).status).toBe(409);
  expect((await call('PUT', '/agents/never', { name: { en: 'V' }, metadata: { version: 1 } })).status).toBe(409);
});

test.each([
  ['no name', { llmConfig }, 'name'],
  ['an empty name', { name: {}, llmConfig }, 'name'],
  ['a name that is no map', { name: 'x', llmConfig }, 'name'],
  ['no key', { name: { en: 'x' }, llmConfig: { provider: 'anthropic', model: 'm' } }, 'llmConfig.apiKey'],
  ['no model', { name: { en: 'x' }, llmConfig: { provider: 'google', apiKey: 'k' } }, 'llmConfig.model'],
  ['an unknown provider', { name: { en: 'x' }, llmConfig: { provider: 'acme', model: 'm' } }, 'llmConfig.provider'],
  ['no address', { name: { en: 'x' }, llmConfig: { provider: 'self_hosted', model: 'm' } }, 'llmConfig.baseUrl'],
  [
    'an address of a vendor',
    { name: { en: 'x' }, llmConfig: { ...llmConfig, baseUrl: 'https://x' } },
    'llmConfig.baseUrl',
  ],
  [
    'an address with a password',
    { name: { en: 'x' }, llmConfig: { provider: 'self_hosted', model: 'm', baseUrl: 'http://a:b@c' } },
    'llmConfig.baseUrl',
  ],
  [
    'a key for the shared token',
    { name: { en: 'x' }, llmConfig: { provider: 'shared', apiKey: 'k' } },
    'llmConfig.apiKey',
  ],
  ['a mask that masks nothing', { name: { en: 'x' }, llmConfig: { ...llmConfig, apiKey: mask } }, 'llmConfig.apiKey'],
  ['another id', { id: 'other', name: { en: 'x' }, llmConfig }, 'id'],
  ['an unknown tool', { name: { en: 'x' }, llmConfig, nativeTools: ['shell'] }, 'nativeTools.0'],
  ['a temperature of 3', { name: { en: 'x' }, llmConfig: { ...llmConfig, temperature: 3 } }, 'llmConfig.temperature'],
])('%s is 400 with a detail', async (_what, body, field) => {
  const response = await call('PUT', '/agents/wrong', body);
  const { type, details } = (await response.json()) as { type: string; details: { field: string }[] };
  expect([response.status, type]).toEqual([400, 'validation_violation']);
  expect(details.map((detail) => detail.field).some((named) => named === field || named === field.split('.')[0])).toBe(
    true,
  );
});

test('a key does not follow an agent to another provider or address', async () => {
  const selfHosted = { provider: 'self_hosted', model: 'm', baseUrl: 'https://models.example.com', apiKey: agentKey };
  await call('PUT', '/agents/moving', { name: { en: 'Moving' }, llmConfig: selfHosted });
  const patch = [{ op: 'REPLACE', path: '/llmConfig/baseUrl', value: 'https://thief.example.com' }];
  const moved = await call('PATCH', '/agents/moving', patch);
  expect([moved.status, await moved.text()]).toEqual([400, expect.stringContaining('must be re-entered')]);
  const vendor = { name: { en: 'Moving' }, llmConfig: { provider: 'openai', model: 'm', apiKey: agentKey } };
  await call('PUT', '/agents/changing', vendor);
  const changed = await call('PATCH', '/agents/changing', [
    { op: 'REPLACE', path: '/llmConfig/provider', value: 'anthropic' },
  ]);
  expect([changed.status, await changed.text()]).toEqual([400, expect.stringContaining('must be re-entered')]);
  const both = [...patch, { op: 'REPLACE', path: '/llmConfig/apiKey', value: 'another' }];
  expect((await call('PATCH', '/agents/moving', both)).status).toBe(204);
});

test('PATCH takes ADD, REMOVE and REPLACE, all of them or none, in pointers or dotted paths', async () => {
  const endpoint = { type: 'endpoint' };
  await call('PUT', '/agents/patched', { name: { en: 'P' }, llmConfig, triggers: [endpoint, endpoint] });
  const patch = [
    { op: 'ADD', path: '/name/de', value: 'Q' },
    { op: 'REPLACE', path: 'enabled', value: false },
    { op: 'remove', path: '/triggers/0' },
    { op: 'ADD', path: '/triggers/-', value: { type: 'endpoint', config: {} } },
    { op: 'ADD', path: 'llmConfig.temperature', value: 1 },
  ];
  expect((await call('PATCH', '/agents/patched', patch)).status).toBe(204);
  const agent = await get('patched');
  expect(agent).toMatchObject({
    name: { en: 'P', de: 'Q' },
    enabled: false,
    triggers: [endpoint, { type: 'endpoint', config: {} }],
    llmConfig: { temperature: 1, apiKey: mask },
    metadata: { version: 2 },
  });
  for (const wrong of [
    { op: 'REMOVE', path: '/nothing' },
    { op: 'REPLACE', path: '/name/fr', value: 'x' },
    { op: 'ADD', path: '/a/b', value: 1 },
    { op: 'ADD', path: '', value: {} },
    { op: 'ADD', path: '/name/fr' },
    { op: 'REMOVE', path: '/name' },
    { op: 'REMOVE', path: '/llmConfig/apiKey' },
    { op: 'REPLACE', path: '/id', value: 'x' },
    { op: 'ADD', path: '/disabledReason', value: 'mine' },
    { op: 'REPLACE', path: '/metadata/createdAt', value: '2020-01-01T00:00:00.000Z' },
    { op: 'ADD', path: '/anything', value: 1 },
    { op: 'ADD', path: '/llmConfig/anything', value: 1 },
    { op: 'ADD', path: '/tags', value: ['a'] },
    { op: 'REPLACE', path: '/userPrompt', value: 'no', from: '/name' },
    { op: 'MOVE', path: '/name', value: 1 },
  ]) {
    const response = await call('PATCH', '/agents/patched', [
      { op: 'REPLACE', path: '/userPrompt', value: 'no' },
      wrong,
    ]);
    expect([wrong, response.status]).toEqual([wrong, 400]);
  }
  expect(await get('patched')).toEqual(agent);
  expect((await call('PATCH', '/agents/nobody', patch)).status).toBe(404);
});

test('DELETE is 204 once, and then 404', async () => {
  await call('PUT', '/agents/gone', { name: { en: 'Gone' }, llmConfig });
  expect((await call('DELETE', '/agents/gone')).status).toBe(204);
  expect((await call('DELETE', '/agents/gone')).status).toBe(404);
  expect((await call('GET', '/agents/gone')).status).toBe(404);
});

test('changes of agents are in the change history, with their keys masked', async () => {
  await call('PUT', '/agents/told', { name: { en: 'Told' }, llmConfig });
  await call('PUT', '/agents/told', { name: { en: 'Told' }, llmConfig: { ...llmConfig, apiKey: 'sk-other' } });
  await call('DELETE', '/agents/told');
  const response = await server.call(`/changelog/${tenant}/changelogs?q=entity:agent entityId:told`, { token });
  const { items } = (await response.json()) as {
    items: { type: string; actor: string; name: string; paths: object }[];
  };
  expect(items.map(({ type, actor, name }) => [type, actor, name])).toEqual([
    ['delete', 'Jane Doe', 'Told'],
    ['update', 'Jane Doe', 'Told'],
    ['create', 'Jane Doe', 'Told'],
  ]);
  expect(items[1]?.paths).toMatchObject({
    'llmConfig.apiKey': { before: mask, after: mask },
    'metadata.version': { before: 1, after: 2 },
  });
  expect(items[2]?.paths).toMatchObject({ 'llmConfig.apiKey': { after: mask } });
});

test('lists and searches take q and fields', async () => {
  const listed = await call('GET', '/agents?q=llmConfig.provider:openai name.en:Price*&fields=name.en');
  expect(await listed.json()).toEqual([{ id: 'desk', name: { en: 'Price desk' } }]);
  const searched = await call('POST', '/agents/search?fields=enabled', { q: 'id:desk' });
  expect(await searched.json()).toEqual([{ id: 'desk', enabled: false }]);
  expect((await call('GET', '/agents?q=name:')).status).toBe(400);
});

test.each(['/agentic/agents', '/agentic/logs/requests', '/agentic/logs/sessions', '/jobs'])(
  'a search of %s without a body has no filter',
  async (path) => {
    const listed = await server.call(`/ai-service/${tenant}${path}`, { token });
    const searched = await server.call(`/ai-service/${tenant}${path}/search`, { token, method: 'POST' });
    expect([searched.status, await searched.json()]).toEqual([200, await listed.json()]);
  },
);

test('a search with null for a body is 400', async () => {
  expect((await call('POST', '/agents/search', null)).status).toBe(400);
});

test('reading takes a reading scope, writing ai.agent_manage', async () => {
  const reader = await server.token(tenant, { scope: 'ai.agent_read' });
  const chatter = await server.token(tenant, { scope: 'ai.agentexecution_manage' });
  expect((await call('GET', '/agents/desk', undefined, reader)).status).toBe(200);
  expect((await call('PUT', '/agents/desk', { name: { en: 'x' } }, reader)).status).toBe(403);
  expect((await call('GET', '/agents', undefined, chatter)).status).toBe(403);
  expect((await call('POST', '/chat', { agentId: 'desk', message: 'x' }, reader)).status).toBe(403);
  const umbrellaToken = await server.token('umbrella');
  const foreign = await callAgentic(server, {
    tenant: 'umbrella',
    token: umbrellaToken,
    path: '/agents/desk',
    method: 'GET',
  });
  expect(foreign.status).toBe(404);
});

test('no key is in an answer, a log line or any table in the clear', async () => {
  const list = await (await call('GET', '/agents')).text();
  expect(list).not.toContain(agentKey);
  expect(server.logLines.join('')).not.toContain(agentKey);
  for (const table of ['agent', 'change_entry', 'change_document']) {
    const exists = await server.database.pool.query('select to_regclass($1) as found', [table]);
    if (exists.rows[0].found === null) continue;
    const { rows } = await server.database.pool.query(`select count(*) as n from ${table} t where t::text like $1`, [
      `%${agentKey}%`,
    ]);
    expect([table, Number(rows[0].n)]).toEqual([table, 0]);
  }
});
