import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { agentKey, callAgentic } from '../../support/server/agents.ts';
import { startTestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const vendor = { provider: 'openai', model: 'gpt-5.4-mini', apiKey: agentKey };
const ofServer = { provider: 'self_hosted_vllm', model: 'm' };
const url = 'https://models.example.com';

const server = closeAfterAll(await startTestServer());
const token = await server.token(tenant);

const call = (method: string, path: string, body?: unknown) =>
  callAgentic(server, { tenant, token, path, method }, body);
const put = (id: string, members: object) => call('PUT', `/agents/${id}`, { name: { en: id }, ...members });
const get = async (id: string) => (await (await call('GET', `/agents/${id}`)).json()) as Record<string, unknown>;
const patch = (id: string, ...operations: object[]) => call('PATCH', `/agents/${id}`, operations);
const faultsOf = async (response: Response) =>
  ((await response.json()) as { details?: { field: string; message: string }[] }).details;

/** Members that are not supported: the field, a body that sets it, and one with its default. */
test.each<[string, object, object]>([
  // The shape that the family has for a member that Annals has in another one.
  ['mcpServers.0.type', { mcpServers: [{ name: 'orders', url, type: 'predefined' }] }, { mcpServers: [] }],
  ['mcpServers.0.domain', { mcpServers: [{ name: 'orders', url, domain: 'order' }] }, { mcpServers: null }],
  ['mcpServers.0.mcpServer', { mcpServers: [{ name: 'own', url, mcpServer: { id: 'own' } }] }, { mcpServers: [] }],
  ['requiredScopes', { requiredScopes: ['customer'] }, { requiredScopes: [] }],
  ['tags', { tags: ['productivity'] }, { tags: null }],
  ['icon', { icon: 'fa-desk' }, { icon: '' }],
  ['outputFormat', { outputFormat: '{"type":"object"}' }, { outputFormat: '' }],
  ['agentCollaborations', { agentCollaborations: [{ agentId: 'other' }] }, { agentCollaborations: [] }],
  ['maxRecursionLimit', { maxRecursionLimit: 21 }, { maxRecursionLimit: 20 }],
  ['enabledMemory', { enabledMemory: true }, { enabledMemory: false }],
  [
    'nativeTools.0.allowedOperations',
    { nativeTools: [{ id: 'change-history', allowedOperations: ['sendMessage'] }] },
    { nativeTools: [{ id: 'change-history', allowedOperations: [] }] },
  ],
  ['triggers.0.type', { triggers: [{ type: 'slack' }] }, { triggers: [] }],
  [
    'triggers.0.config',
    { triggers: [{ type: 'endpoint', config: { events: ['order.created'] } }] },
    { triggers: [{ type: 'endpoint', config: null }] },
  ],
  [
    'llmConfig.token',
    { llmConfig: { ...vendor, token: { id: 'my-token' } } },
    { llmConfig: { ...vendor, token: null } },
  ],
  [
    'llmConfig.baseProvider',
    { llmConfig: { ...ofServer, selfHostedParams: { url }, baseProvider: 'GOOGLE' } },
    { llmConfig: { ...ofServer, selfHostedParams: { url }, baseProvider: 'OPENAI' } },
  ],
  ...['authorizationHeaderName', 'authorizationHeaderToken', 'oauth'].map((name): [string, object, object] => [
    `llmConfig.selfHostedParams.${name}`,
    { llmConfig: { ...ofServer, selfHostedParams: { url, [name]: 'x' } } },
    {
      llmConfig: {
        ...ofServer,
        selfHostedParams: { url, [name]: name === 'authorizationHeaderName' ? 'Authorization' : {} },
      },
    },
  ]),
])(
  '%s is accepted at its default; any other value is 400 with what to write instead',
  async (field, unsupported, atDefault) => {
    const refused = await put('refused', unsupported);
    expect([refused.status, await faultsOf(refused)]).toEqual([
      400,
      [{ field, message: expect.stringMatching(/^must be [a-zA-Z0-9 ]+: .{10,}$/) }],
    ]);
    expect((await call('GET', '/agents/refused')).status).toBe(404);
    expect((await put('taken', atDefault)).status).toBeLessThan(300);
    for (const name of ['mcpServers', 'requiredScopes', 'tags', 'icon', 'maxRecursionLimit', 'enabledMemory']) {
      expect(await get('taken')).not.toHaveProperty(name);
    }
  },
);

test('a member of another provider is 400 with its field', async () => {
  const response = await put('refused', { llmConfig: { provider: 'shared', apiKey: agentKey, baseUrl: url } });
  expect([response.status, await faultsOf(response)]).toEqual([
    400,
    [
      { field: 'llmConfig.apiKey', message: 'is not for the provider shared' },
      { field: 'llmConfig.baseUrl', message: 'is not for the provider shared' },
    ],
  ]);
});

test('a chat with attachments is 400; an empty list counts as none', async () => {
  const chat = (attachments: unknown) => call('POST', '/chat', { agentId: 'nobody', message: 'x', attachments });
  const refused = await chat([{ attachmentId: 'a' }]);
  expect([refused.status, await faultsOf(refused)]).toMatchObject([400, [{ field: 'attachments' }]]);
  expect((await chat([])).status).toBe(404);
});

test('a patch to an unknown path changes nothing', async () => {
  await put('patched', {});
  for (const [path, field] of [
    ['/anything', 'anything'],
    ['/llmConfig/anything', 'llmConfig.anything'],
    ['/metadata/anything', 'metadata.anything'],
    ['requiredScopes', 'requiredScopes'],
  ] as const) {
    const response = await patch('patched', { op: 'ADD', path, value: ['x'] });
    expect([path, response.status, await faultsOf(response)]).toMatchObject([path, 400, [{ field }]]);
  }
  for (const path of ['/metadata/createdAt', '/metadata/modifiedAt']) {
    const response = await patch('patched', { op: 'REPLACE', path, value: '2020-01-01T00:00:00.000Z' });
    expect([response.status, await faultsOf(response)]).toMatchObject([400, [{ message: 'is read-only' }]]);
  }
  expect(await get('patched')).toMatchObject({ metadata: { version: 1 } });
});

test('a patch takes a text as the name or description in the language that is shown', async () => {
  await put('named', { name: { de: 'Preise', en: 'Prices' } });
  const described = await patch('named', { op: 'ADD', path: '/description', value: 'Knows prices' });
  expect(described.status).toBe(204);
  expect(await get('named')).toMatchObject({ description: { en: 'Knows prices' } });
  const both = [
    { op: 'REPLACE', path: '/description', value: 'Knows all prices' },
    { op: 'REPLACE', path: 'name', value: 'Price desk' },
  ];
  expect((await patch('named', ...both)).status).toBe(204);
  expect(await get('named')).toMatchObject({
    name: { de: 'Preise', en: 'Price desk' },
    description: { en: 'Knows all prices' },
  });
  await put('german', { name: { de: 'Preise' } });
  expect((await patch('german', { op: 'REPLACE', path: '/name', value: 'Auskunft' })).status).toBe(204);
  expect(await get('german')).toMatchObject({ name: { de: 'Auskunft' } });
  expect((await patch('german', { op: 'REPLACE', path: '/description', value: 'x' })).status).toBe(400);
  expect((await patch('german', { op: 'REPLACE', path: '/userPrompt', value: 5 })).status).toBe(400);
});

test('triggers and tools of an earlier version stay where a patch changes something else', async () => {
  await put('older', {});
  const triggers = [{ type: 'commerce_events', config: { events: ['order.created'] } }];
  const nativeTools = [{ id: 'change-history', more: 1 }];
  await server.database.pool.query(
    `update agent set document = (document::jsonb || $1)::text, fields = fields || $1 where tenant = $2 and id = 'older'`,
    [JSON.stringify({ triggers, nativeTools }), tenant],
  );
  expect((await patch('older', { op: 'REPLACE', path: '/enabled', value: false })).status).toBe(204);
  const shown = await (
    await server.call(`/ai-service/${tenant}/agentic/agents/older`, { token, ofInventedRows: true })
  ).json();
  expect(shown).toMatchObject({ enabled: false, triggers, nativeTools });
  const refused = await patch('older', { op: 'ADD', path: '/triggers/-', value: { type: 'endpoint' } });
  expect([refused.status, (await faultsOf(refused))?.[0]?.field]).toEqual([400, 'triggers.0.type']);
  expect((await patch('older', { op: 'REPLACE', path: '/triggers', value: [{ type: 'endpoint' }] })).status).toBe(204);
});

test('the search of agents looks into each language of the name, and takes an expression with blanks', async () => {
  await put('complaints', { name: { en: 'Complaint desk', de: 'Beschwerden' } });
  const search = async (q: string) => {
    const response = await call('POST', '/agents/search', { q });
    return [response.status, ((await response.json()) as { id: string }[]).map(({ id }) => id)];
  };
  for (const q of [
    'name:~Complaint',
    'name:~schwer',
    'name.en:~(Complaint desk)',
    'name:(~Complaint desk)',
    'name:Beschwerden',
  ]) {
    expect([q, await search(q)]).toEqual([q, [200, ['complaints']]]);
  }
  expect(await search('name.de:~Complaint')).toEqual([200, []]);
});
