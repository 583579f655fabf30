import { startVendor, type Vendor } from '../../test/support/vendor/vendor-server.ts';
import type { Studio } from './take.ts';

/** A provider of language models for the demo, which has none, and the settings that lead to it. */
export async function startProvider(): Promise<{ vendor: Vendor; environment: Record<string, string> }> {
  const vendor = await startVendor();
  const environment = {
    OPENAI_BASE_URL: vendor.baseUrl,
    ANTHROPIC_BASE_URL: vendor.baseUrl,
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
  };
  return { vendor, environment };
}

const answer = {
  kind: 'answer',
  text: 'Mia Schneider lowered it on Monday: from 1,299.00 to 1,199.00. The reason that she gave is the autumn sale.',
  usage: { input: 1_412, output: 96 },
} as const;

/** An agent that answers. */
export const agentId = 'price-desk';
/** An agent that Annals has disabled. */
export const disabledAgentId = 'claims-desk';
/** The session of the chat with the agent that answers. */
export const sessionId = '7d8f6a52-3f0c-4c1b-9d51-0c8f0a3be111';

/** A shelf that was changed. */
export const shelfId = 'a-1';
/** A saved view. */
export const viewId = 'price-changes';

/** Makes what the demo lacks: agents with requests, failed ones too, settings, a job, saved views. Throws where the service refuses. */
export async function fillDemo(
  { browser, origin, state }: Pick<Studio, 'browser' | 'origin' | 'state'>,
  vendor: Vendor,
): Promise<void> {
  const context = await browser.newContext({ storageState: state });
  const call = async (method: string, path: string, data?: unknown, headers: Record<string, string> = {}) => {
    const response = await context.request.fetch(`${origin}/console/api${path}`, {
      method,
      headers: { origin, ...headers },
      ...(data === undefined ? {} : { data }),
    });
    // A chat whose provider refuses the key is a part of the picture.
    if (!response.ok() && !path.endsWith('/chat')) throw new Error(`${method} ${path}: ${await response.text()}`);
  };
  const agents = '/ai-service/demo/agentic';
  await call('PUT', `${agents}/agents/${agentId}`, {
    name: { en: 'Price desk', de: 'Preisfragen' },
    description: { en: 'Answers questions about prices.' },
    userPrompt: 'You answer questions about the prices of products.\nLook into the change history before you answer.',
    llmConfig: { provider: 'shared', temperature: 0.2, maxTokens: 800 },
    nativeTools: ['change-history'],
  });
  await call('PUT', `${agents}/agents/${disabledAgentId}`, {
    name: { en: 'Claims desk' },
    description: { en: 'Helps with warranty claims.' },
    llmConfig: { provider: 'anthropic', model: 'claude-sonnet-5', apiKey: 'sk-old' },
  });
  vendor.behave(answer);
  const chat = `${agents}/chat`;
  const session = { 'session-id': sessionId };
  await call('POST', chat, { agentId, message: 'Who changed the price of the Brisk Go last week?' }, session);
  await call('POST', chat, { agentId, message: 'And what was it before?' }, session);
  vendor.behave({ kind: 'status', status: 503 });
  await call('POST', chat, { agentId, message: 'And today?' });
  vendor.behave({ kind: 'status', status: 401 });
  for (let failure = 0; failure < 10; failure += 1)
    await call('POST', chat, { agentId: disabledAgentId, message: 'Which claims are open?' });
  vendor.behave(answer);
  await call('POST', `${chat}-async`, { agentId, message: 'Summarize the price changes of this month.' });
  await call('POST', '/configuration/demo/configurations', [
    { key: 'currency', value: 'EUR', description: 'Of all prices' },
    { key: 'rates', value: { standard: 0.19, reduced: 0.07 } },
    { key: 'shopToken', value: 'of-the-shop', secured: true },
  ]);
  await call('PUT', `/changelog/demo/views/${viewId}`, {
    name: 'Price changes',
    q: 'entity:product path:price',
    range: 'P90D',
  });
  await call('PUT', '/changelog/demo/views/deleted', {
    name: 'What was deleted today',
    q: 'type:delete',
    range: 'today',
  });
  const shelf = '/schema/demo/custom-entities/SHELF';
  await call('PUT', shelf, { name: { en: 'Shelf', de: 'Regal' } });
  await call('PUT', `${shelf}/instances/${shelfId}`, { name: 'Aisle A, espresso machines', slots: 12, height: 2.1 });
  await call('PUT', `${shelf}/instances/${shelfId}`, { name: 'Aisle A', slots: 2, note: 'to be sorted' });
  await call('POST', '/ai-service/demo/jobs', { type: 'EXPORT', q: 'entity:product', format: 'CSV' });
  await context.close();
}
