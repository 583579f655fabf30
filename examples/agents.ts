// Makes an agent, changes it in every way there is, and finds it. Run it with: node examples/agents.ts
// With curl: curl -s "$ANNALS_URL/ai-service/demo/agentic/agents" -H "Authorization: Bearer $TOKEN"
import { and, field } from '@annals/client/query';
import { demoClient } from './annals.ts';

const { agents } = demoClient('ai.agent_manage');

await agents.put('price-desk', {
  name: { en: 'Price desk', de: 'Preisauskunft' },
  description: { en: 'Knows who changed which price, and when' },
  userPrompt: 'You answer questions about prices in one sentence.',
  llmConfig: { provider: 'shared', temperature: 0.2, maxTokens: 512 },
  nativeTools: ['change-history'],
});
const { created } = await agents.put('own-key', {
  name: { en: 'With a key of our own' },
  llmConfig: { provider: 'anthropic', model: 'claude-haiku-4-5', apiKey: 'sk-not-a-real-key' },
});
console.log(`own-key is ${created ? 'new' : 'replaced'}`);

// What get shows can be sent back: the mask leaves the key as it is, and an old version is refused.
const agent = await agents.get('own-key');
await agents.put('own-key', { ...agent, enabled: false });
const refused = await agents.put('own-key', { ...agent, enabled: true }).catch((error: unknown) => error);
console.log(`with the old version: ${refused}`);
await agents.patch('own-key', [
  { op: 'REPLACE', path: '/enabled', value: true },
  { op: 'ADD', path: '/name/de', value: 'Mit eigenem Schlüssel' },
]);

// Tools of another server, by the Model Context Protocol: read what it offers, look at it, and approve each tool by its hash.
const docs = { name: 'docs', url: process.env.TOOLS_URL ?? 'https://tools.example.com/mcp' };
const llmConfig = { provider: 'shared' } as const;
await agents.put('librarian', { name: { en: 'Librarian' }, llmConfig, mcpServers: [docs] });
try {
  const { tools } = await agents.readTools('librarian', docs.name);
  for (const { name, state, offered } of tools) console.log(`${name} (${state}): ${offered?.description}`);
  const approved = tools.flatMap(({ name, sha256 }) => (name === 'search' && sha256 ? [{ name, sha256 }] : []));
  await agents.patch('librarian', [{ op: 'REPLACE', path: '/mcpServers/0/tools', value: approved }]);
} catch (error) {
  console.log(`no tools: ${error}`);
}

const ofVendor = await agents.list({
  q: field('llmConfig.provider').is('anthropic'),
  fields: 'name,enabled',
  sort: 'name.en',
});
console.log(ofVendor.items);
for await (const { id } of agents.list({
  q: and(field('nativeTools').is('change-history'), field('enabled').is(true)),
})) {
  console.log(`${id} may look into the change history`);
}
await agents.delete('own-key');
