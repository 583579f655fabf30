// Makes an agent, changes it in every way there is, and finds it. Run it with: node examples/agents.ts
import { getToken, setting } from './token.ts';

const token = await getToken('ai.agent_manage');
const base = `${setting('ANNALS_URL')}/ai-service/demo/agentic/agents`;

async function call(method: string, path: string, body?: unknown) {
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  console.log(`${method} ${path}: ${response.status} ${text.slice(0, 160)}`);
  return text === '' ? undefined : JSON.parse(text);
}

await call('PUT', '/price-desk', {
  name: { en: 'Price desk', de: 'Preisauskunft' },
  description: { en: 'Knows who changed which price, and when' },
  userPrompt: 'You answer questions about prices in one sentence.',
  llmConfig: { provider: 'shared', temperature: 0.2, maxTokens: 512 },
  nativeTools: ['change-history'],
});
await call('PUT', '/own-key', {
  name: { en: 'With a key of our own' },
  llmConfig: { provider: 'anthropic', model: 'claude-haiku-4-5', apiKey: 'sk-not-a-real-key' },
});

// What GET shows can be sent back: the mask leaves the key as it is, and an old version is refused.
const agent = await call('GET', '/own-key');
await call('PUT', '/own-key', { ...agent, enabled: false });
await call('PUT', '/own-key', { ...agent, enabled: true });
await call('PATCH', '/own-key', [
  { op: 'REPLACE', path: '/enabled', value: true },
  { op: 'ADD', path: '/name/de', value: 'Mit eigenem Schlüssel' },
]);

await call('GET', '?q=llmConfig.provider:anthropic&fields=name,enabled&sort=name.en');
await call('POST', '/search?pageSize=5', { q: 'nativeTools.0:change-history enabled:true' });
await call('DELETE', '/own-key');
