import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { agentKey, callAgentic } from '../../support/server/agents.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const tenant = 'acme';
const vendor = closeAfterAll(await startVendor());
const allow = new URL(vendor.baseUrl).host;
const server = closeAfterAll(await startTestServer({ environment: { ANNALS_SELF_HOSTED_ALLOW: allow } }));
const token = await server.token(tenant);

const call = (method: string, path: string, body?: unknown) =>
  callAgentic(server, { tenant, token, path, method }, body);
const put = (id: string, llmConfig: object, more: object = {}) =>
  call('PUT', `/agents/${id}`, { name: { en: id }, llmConfig, ...more });
const get = async (id: string) => (await call('GET', `/agents/${id}`)).json() as Promise<Record<string, never>>;

test.each(['self_hosted_ollama', 'self_hosted_vllm'])(
  '%s with selfHostedParams.url comes back as it was written, and its server is called without a key',
  async (provider) => {
    const llmConfig = {
      provider,
      model: 'gpt-5-is-only-a-name',
      temperature: 0.3,
      selfHostedParams: { url: vendor.baseUrl },
    };
    expect((await put(provider, llmConfig, { nativeTools: [{ id: 'change-history' }] })).status).toBe(201);
    const shown = await get(provider);
    expect(shown).toMatchObject({ llmConfig, nativeTools: [{ id: 'change-history' }] });
    expect(shown.llmConfig).toEqual(llmConfig);
    expect((await call('PUT', `/agents/${provider}`, shown)).status).toBe(204);
    vendor.behave({ kind: 'answer', text: 'Good day' });
    const answer = await call('POST', '/chat', { agentId: provider, message: 'Hello' });
    expect([answer.status, await answer.json()]).toMatchObject([200, [{ agentType: 'generic', message: 'Good day' }]]);
    const request = vendor.requests.at(-1);
    expect(request?.headers).not.toHaveProperty('authorization');
    // Nothing is guessed from the name of a self-hosted model, so the temperature stays. The tool is there.
    expect(request?.body).toMatchObject({
      model: 'gpt-5-is-only-a-name',
      temperature: 0.3,
      tools: [{ function: { name: 'change-history' } }],
    });
  },
);

test('a key does not follow an agent to another selfHostedParams.url', async () => {
  const llmConfig = { provider: 'self_hosted_vllm', model: 'm', apiKey: agentKey };
  await put('moving', { ...llmConfig, selfHostedParams: { url: 'https://models.example.com' } });
  const patch = [{ op: 'REPLACE', path: '/llmConfig/selfHostedParams/url', value: 'https://thief.example.com' }];
  const moved = await call('PATCH', '/agents/moving', patch);
  expect([moved.status, await moved.text()]).toEqual([400, expect.stringContaining('must be re-entered')]);
});

const details = async (response: Response) => {
  expect(response.status).toBe(400);
  return ((await response.json()) as { details: unknown }).details;
};

test('a wrong provider is named once, with the values that are allowed', async () => {
  const message = 'must be one of shared, openai, anthropic, google, self_hosted, self_hosted_ollama, self_hosted_vllm';
  for (const provider of ['acme', 5, null]) {
    expect(await details(await put('wrong', { provider, model: 'm' }))).toEqual([
      { field: 'llmConfig.provider', message },
    ]);
  }
});

test('a wrong tool is named once', async () => {
  const llmConfig = { provider: 'shared' };
  for (const tool of ['shell', { id: 'shell' }, {}, 7]) {
    const [detail, ...more] = (await details(await put('wrong', llmConfig, { nativeTools: [tool] }))) as {
      field: string;
    }[];
    const isObject = typeof tool === 'object';
    expect([detail?.field, more]).toEqual([isObject ? 'nativeTools.0.id' : 'nativeTools.0', []]);
  }
});

test.each([
  ['no address', { provider: 'self_hosted_ollama', model: 'm' }, 'llmConfig.selfHostedParams'],
  [
    'no url in it',
    { provider: 'self_hosted_vllm', model: 'm', selfHostedParams: {} },
    'llmConfig.selfHostedParams.url',
  ],
  [
    'an address with a password',
    { provider: 'self_hosted_vllm', model: 'm', selfHostedParams: { url: 'http://a:b@c' } },
    'llmConfig.selfHostedParams.url',
  ],
  [
    'the other form of address',
    { provider: 'self_hosted_vllm', model: 'm', selfHostedParams: { url: 'http://c' }, baseUrl: 'http://c' },
    'llmConfig.baseUrl',
  ],
  [
    'the other form for self_hosted',
    { provider: 'self_hosted', model: 'm', selfHostedParams: { url: 'http://c' }, baseUrl: 'http://c' },
    'llmConfig.selfHostedParams',
  ],
  [
    'an address of a vendor',
    { provider: 'openai', model: 'm', apiKey: 'k', selfHostedParams: { url: 'http://c' } },
    'llmConfig.selfHostedParams',
  ],
])('%s is 400 with one detail', async (_what, llmConfig, field) => {
  expect(await details(await put('wrong', llmConfig))).toEqual([{ field, message: expect.any(String) }]);
});
