import { createLanguageModels } from '../../src/providers/language-models.ts';
import type { Answer, LanguageModels, ModelCall } from '../../src/providers/port.ts';
import { createTransport } from '../../src/providers/transport.ts';
import { startVendor, type Vendor } from '../support/vendor/vendor-server.ts';

export const vendors = [
  { provider: 'openai', model: 'gpt-5.4-mini', keyHeader: 'authorization', key: 'Bearer sk-key' },
  { provider: 'anthropic', model: 'claude-haiku-5-5', keyHeader: 'x-api-key', key: 'sk-key' },
  { provider: 'google', model: 'gemini-3.8-flash', keyHeader: 'x-goog-api-key', key: 'sk-key' },
] as const;

/** The models of all vendors, which one server plays. To be closed in afterAll. */
export async function startModels(): Promise<{ vendor: Vendor; models: LanguageModels; close(): Promise<void> }> {
  const vendor = await startVendor();
  const transport = createTransport();
  const baseUrls = { openai: vendor.baseUrl, anthropic: `${vendor.baseUrl}/v1`, google: vendor.baseUrl };
  const models = createLanguageModels({ baseUrls, transports: { vendors: transport, selfHosted: transport } });
  return {
    vendor,
    models,
    async close() {
      transport.close();
      await vendor.close();
    },
  };
}

/** A call with one short message. */
export function callOf(of: (typeof vendors)[number], more: Partial<ModelCall> = {}): ModelCall {
  return {
    provider: of.provider,
    model: of.model,
    apiKey: 'sk-key',
    messages: [{ role: 'user', content: 'question' }],
    maxTokens: 100,
    times: { silence: 10_000, total: 600_000 },
    ...more,
  };
}

/** A part of the text of a streamed answer, or the whole answer at its end. */
export type StreamEvent = { type: 'text'; text: string } | { type: 'answer'; answer: Answer };

/** What a streamed call gives, once it has ended. */
export async function all(models: LanguageModels, call: ModelCall): Promise<StreamEvent[]> {
  const collected: StreamEvent[] = [];
  const answer = await models.call(call, (text) => void collected.push({ type: 'text', text }));
  return [...collected, { type: 'answer', answer }];
}
