import { maxOf } from './figures.ts';
import { openWorld } from './world.ts';

// How long one request holds the event loop at a stretch, for each operation that takes or answers a long document.
const rounds = 3;
const keys = Array.from({ length: 80_000 }, (_, index) => `k${index}`);
const wide = (value: number, more = '') => `{${more}${keys.map((key) => `"${key}":${value}`).join(',')}}`;
const escaped = `{${keys.slice(0, 50_000).map((key) => `"\\u006b${key.slice(1)}":1`)}}`;
const digits = `{${keys.slice(0, 70_000).map((_key, index) => `"${(index * 7_919) % 4_000_000_000}":1`)}}`;
const list = `[${'{},'.repeat(98_000)}{}]`;
const texts = (value: string) => `{${keys.map((key) => `"${key}":"${value}"`).join(',')}}`;
const agent = (value: string) =>
  `{"name":{"en":"Wide"},"description":${texts(value)},"llmConfig":{"provider":"shared"}}`;
const doubling = [
  { op: 'add', path: '/x', value: {} },
  ...Array.from({ length: 15 }, (_, index) => ({ op: 'copy', from: '/x', path: `/x/${index}` })),
];

const world = await openWorld();
const service = await world.startService();
try {
  const tenant = 'turns';
  const token = await service.tokenOf(await world.makeTenant(tenant));

  const call = async (method: string, path: string, body?: string, headers: Record<string, string> = {}) => {
    const response = await fetch(service.baseUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    await response.arrayBuffer();
    return response.status;
  };
  const types = `/schema/${tenant}/custom-entities`;
  const things = `${types}/THING/instances`;
  const agents = `/ai-service/${tenant}/agentic/agents`;
  const items = `/configuration/${tenant}/configurations`;
  const item = (key: string, value: string) => `{"key":"${key}","value":${value}}`;
  await call('POST', types, '{"id":"THING","name":{"en":"Thing"}}');
  await call(
    'POST',
    types,
    '{"id":"STRICT","name":{"en":"Strict"},"jsonSchema":{"additionalProperties":{"type":"integer"}}}',
  );
  const operations: [string, () => Promise<number>][] = [
    ['a small instance', () => call('PUT', `${things}/small`, '{"a":1}')],
    ['an instance is made', () => call('POST', things, wide(1))],
    ['a body with a fault at its end', () => call('POST', things, `${wide(1)}x`)],
    ['an instance is put', () => call('PUT', `${things}/wide`, wide(1))],
    ['an instance is replaced', () => call('PUT', `${things}/wide`, wide(2))],
    ['with escaped keys', () => call('PUT', `${things}/escaped`, escaped)],
    ['with keys of digits', () => call('PUT', `${things}/digits`, digits)],
    ['with an array of 98,000 objects', () => call('PUT', `${things}/list`, `{"list":${list}}`)],
    ['against a schema', () => call('PUT', `${types}/STRICT/instances/one`, wide(3))],
    ['a patch adds a member', () => call('PATCH', `${things}/wide`, '[{"op":"add","path":"/z","value":1}]')],
    ['a patch tests all', () => call('PATCH', `${things}/wide`, `[{"op":"test","path":"","value":${wide(2)}}]`)],
    ['a patch doubles a value 15 times', () => call('PATCH', `${things}/small`, JSON.stringify(doubling))],
    ['an instance is read', () => call('GET', `${things}/wide`)],
    ['instances are listed', () => call('GET', things)],
    ['with chosen fields', () => call('GET', `${things}?fields=k1,id`)],
    [
      'a type with a schema that is too long',
      () => call('PUT', `${types}/LONG`, `{"name":{"en":"a"},"jsonSchema":{"default":${wide(1)}}}`),
    ],
    ['it is replaced', () => call('PUT', `${types}/LONG`, `{"name":{"en":"a"},"jsonSchema":{"default":${wide(2)}}}`)],
    ['it is deleted', () => call('DELETE', `${types}/LONG`)],
    ['an agent is put', () => call('PUT', `${agents}/wide`, agent('1'))],
    ['an agent is replaced', () => call('PUT', `${agents}/wide`, agent('2'))],
    [
      'an agent is patched',
      () => call('PATCH', `${agents}/wide`, '[{"op":"ADD","path":"/description/more","value":"1"}]'),
    ],
    ['agents are listed, with fields', () => call('GET', `${agents}?fields=name`)],
    [
      'a chat with the agent',
      () => call('POST', `/ai-service/${tenant}/agentic/chat`, '{"agentId":"wide","message":"a"}'),
    ],
    [
      'a chat with unknown members',
      () => call('POST', `/ai-service/${tenant}/agentic/chat`, wide(1, '"agentId":"x","message":"a",')),
    ],
    [
      'a completion with unknown members',
      () =>
        call(
          'POST',
          `/ai-service/${tenant}/completions`,
          `{"messages":[{"role":"user","content":"a"}],"x":${wide(1)}}`,
        ),
    ],
    [
      'the same with an Idempotency-Key',
      () =>
        call(
          'POST',
          `/ai-service/${tenant}/completions`,
          `{"messages":[{"role":"user","content":"a"}],"x":${wide(1)}}`,
          { 'idempotency-key': 'k' },
        ),
    ],
    [
      'faults in all messages',
      () => call('POST', `/ai-service/${tenant}/completions`, `{"messages":[${'1,'.repeat(99_000)}1]}`),
    ],
    ['a configuration is made', () => call('POST', items, `[${item('wide', wide(1))}]`)],
    ['a configuration is replaced', () => call('PUT', `${items}/wide`, item('wide', wide(2)))],
    ['configurations are listed', () => call('GET', items)],
    ['a configuration is deleted', () => call('DELETE', `${items}/wide`)],
    ['the history is listed', () => call('GET', `/changelog/${tenant}/changelogs?size=100`)],
    ['an agent is deleted', () => call('DELETE', `${agents}/wide`)],
    ['an instance is deleted', () => call('DELETE', `${things}/wide`)],
  ];

  const seen = operations.map(([name]) => ({ name, turns: [] as number[], statuses: new Set<number>() }));
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, [, operation]] of operations.entries()) {
      await service.maxTurn();
      seen[index]?.statuses.add(await operation());
      seen[index]?.turns.push(await service.maxTurn());
    }
  }
  console.log('| operation | status | longest turn, ms of processor time: each round |\n|---|---|---|');
  for (const { name, turns, statuses } of seen) {
    console.log(`| ${name} | ${[...statuses].join(' ')} | ${turns.map((turn) => turn.toFixed(0)).join(' · ')} |`);
  }
  console.log(`\nlongest after the first round: ${maxOf(seen.flatMap(({ turns }) => turns.slice(1))).toFixed(0)} ms`);
} finally {
  await service.stop();
  await world.close();
}
