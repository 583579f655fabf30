import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { startTestServer } from '../../support/server/server.ts';

const tokens = new Map<string, string>();

const server = closeAfterAll(
  await startTestServer({
    environment: {
      ANNALS_DELIVERY_ALLOW: 'acme=10.1.0.0/16,acme=192.168.7.7:8443',
      ANNALS_SELF_HOSTED_ALLOW: '10.1.0.0/16,192.168.7.7:8443',
    },
  }),
);
for (const tenant of ['acme', 'other']) tokens.set(tenant, await server.token(tenant));
const message =
  'must not be a private, loopback, link-local or other special address that the operator has not allowed';

async function send(tenant: string, method: string, path: string, body: unknown) {
  const token = tokens.get(tenant) ?? '';
  const response = await server.call(path, { method, token, json: body });
  const answer = (await response.json().catch(() => ({}))) as { id?: string; details?: unknown };
  return { status: response.status, id: answer.id, details: answer.details };
}

const keys = {
  region: 'eu-central-1',
  bucket: 'changes',
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'secret-of-the-bucket',
};
const targetsOf = (url: string): [string, Record<string, unknown>][] => [
  ['target.url', { type: 'webhook', url }],
  ['target.url', { type: 'http', url }],
  ['target.url', { type: 'splunk', url, token: '6f6f1d8e-5a7c-4f2e-9d58-0f8a4f7a1c11' }],
  ['target.endpoint', { type: 's3', endpoint: url, ...keys }],
];
const subscription = (target: object) => ({ name: 'one', target });

const refused = [
  'https://127.0.0.1',
  'https://127.1',
  'https://0x7f000001',
  'https://169.254.169.254',
  'https://10.2.0.1',
  'https://[::1]',
  'https://[fe80::1]',
  'https://[::ffff:10.2.0.1]',
  'https://0.0.0.0',
  'https://192.168.7.7:8444',
];
const accepted = ['https://10.1.2.3', 'http://10.1.2.3', 'https://192.168.7.7:8443', 'https://[::ffff:10.1.2.3]', 'https://8.8.8.8', 'https://localhost', 'https://erp.internal']; // biome-ignore format: one line

test.each(refused)('a target at %s is 400 when it is made and when it is changed', async (url) => {
  for (const [field, target] of targetsOf(url)) {
    const answer = await send('acme', 'POST', '/changelog/acme/subscriptions', subscription(target));
    expect([target.type, answer.status, answer.details]).toEqual([target.type, 400, [{ field, message }]]);
  }
  const made = await send('acme', 'POST', '/changelog/acme/subscriptions', subscription({ type: 'webhook', url: 'https://a.invalid' })); // biome-ignore format: one line
  const changed = subscription({ type: 'webhook', url });
  const answer = await send('acme', 'PUT', `/changelog/acme/subscriptions/${made.id}`, changed);
  expect([made.status, answer.status, answer.details]).toEqual([201, 400, [{ field: 'target.url', message }]]);
});

test.each(accepted)('a target at %s is taken: it is public, allowed for the tenant, or a name', async (url) => {
  for (const [, target] of targetsOf(url)) {
    const answer = await send('acme', 'POST', '/changelog/acme/subscriptions', subscription(target));
    expect([target.type, answer.status]).toEqual([target.type, 201]);
    await send('acme', 'DELETE', `/changelog/acme/subscriptions/${answer.id}`, undefined);
  }
});

test('what is allowed for one tenant is refused for another', async () => {
  const [[, target] = ['', {}]] = targetsOf('https://10.1.2.3');
  const answer = await send('other', 'POST', '/changelog/other/subscriptions', subscription(target));
  expect([answer.status, answer.details]).toEqual([400, [{ field: 'target.url', message }]]);
});

test.each(refused)(
  'a self-hosted server and a server of tools at %s are 400, whatever member names it',
  async (url) => {
    const agent = (members: object) => ({ name: { en: 'A' }, ...members });
    const put = async (members: object) =>
      await send('acme', 'PUT', '/ai-service/acme/agentic/agents/refused', agent(members));
    const model = { model: 'm' };
    const servers = [
      { name: 'docs', url: 'https://tools.invalid' },
      { name: 'inner', url },
    ];
    for (const [field, members] of [
      ['llmConfig.baseUrl', { llmConfig: { provider: 'self_hosted', ...model, baseUrl: url } }],
      [
        'llmConfig.selfHostedParams.url',
        { llmConfig: { provider: 'self_hosted_vllm', ...model, selfHostedParams: { url } } },
      ],
      ['mcpServers.1.url', { llmConfig: { provider: 'shared' }, mcpServers: servers }],
    ] as const) {
      const answer = await put(members);
      expect([field, answer.status, answer.details]).toEqual([field, 400, [{ field, message }]]);
    }
    const value = { url, apiKey: 'k' };
    const item = await send('acme', 'POST', '/configuration/acme/configurations', [
      { key: 'selfHostedProvider', value },
    ]);
    expect([item.status, item.details]).toEqual([400, [{ field: '0.value', message: `\`url\` ${message}` }]]);
  },
);

test.each(['http://10.1.2.3', 'http://192.168.7.7:8443', 'http://localhost:11434', 'https://8.8.8.8'])(
  'an agent at %s is made, and a patch of its address to one that is refused is 400',
  async (baseUrl) => {
    const path = '/ai-service/acme/agentic/agents/made';
    const llmConfig = { provider: 'self_hosted', model: 'm', baseUrl };
    expect((await send('acme', 'PUT', path, { name: { en: 'A' }, llmConfig })).status).toBeLessThan(300);
    const patch = (value: string) => [{ op: 'REPLACE', path: '/llmConfig/baseUrl', value }];
    const answer = await send('acme', 'PATCH', path, patch('http://127.0.0.1:1'));
    expect([answer.status, answer.details]).toEqual([400, [{ field: 'llmConfig.baseUrl', message }]]);
    expect((await send('acme', 'PATCH', path, patch('http://10.1.9.9'))).status).toBe(204);
  },
);
