import { createOpenAI } from '@ai-sdk/openai';
import { type Adapter, figure, memberOf, promptMessage } from './adapter.ts';

/**
 * The chat completions format, which self-hosted servers and gateways speak as well, and which keeps no answers at
 * the vendor. System messages stay where they are.
 */
export const openai: Adapter = {
  defaultBaseUrl: 'https://api.openai.com/v1',

  languageModel({ model, apiKey, baseUrl, fetch }) {
    return createOpenAI({ apiKey, baseURL: baseUrl, fetch }).chat(model);
  },

  promptOf: (messages) => messages.map(promptMessage),

  usageOf: (raw) => ({
    inputTokens: figure(raw, 'prompt_tokens'),
    outputTokens: figure(raw, 'completion_tokens'),
  }),

  usageIn: (event) => memberOf(event, 'usage'),

  faultOfRefusal: (_status, body) =>
    memberOf(memberOf(body, 'error'), 'code') === 'model_not_found' ? 'model_unknown' : undefined,
};
