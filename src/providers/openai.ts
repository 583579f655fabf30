import { loadPart } from '../core/package-folder.ts';
import { type Adapter, type ModelAccess, promptMessage } from './adapter.ts';
import { figure, memberOf } from './members.ts';
import { openaiAnswers } from './openai-answers.ts';
import type { ProviderFault } from './port.ts';

/** Imported once: each lookup takes a tenth of the time in which the package writes a request. */
let vendorPackage: Promise<typeof import('@ai-sdk/openai')> | undefined;

/**
 * The chat completions format, also of self-hosted servers and gateways. The vendor stores no answers. System messages
 * keep their position.
 */
export const openai: Adapter = {
  defaultBaseUrl: 'https://api.openai.com/v1',

  async languageModel({ model, apiKey, baseUrl, fetch }) {
    vendorPackage ??= loadPart(() => import('@ai-sdk/openai'));
    const { createOpenAI } = await vendorPackage;
    return createOpenAI({ apiKey, baseURL: baseUrl, fetch }).chat(model);
  },

  promptOf: (messages) => messages.map((message) => promptMessage(message)),

  optionsOf({ parallelToolCalls, responseFormat, reasoningEffort }) {
    const options = {
      ...(parallelToolCalls === undefined ? {} : { parallelToolCalls }),
      ...(responseFormat === undefined ? {} : { strictJsonSchema: responseFormat.strict ?? false }),
      // Passed on unchecked: the vendor decides whether a model takes an effort.
      ...(reasoningEffort === undefined ? {} : { reasoningEffort }),
    };
    // Left out if empty, because the package validates it on every call.
    return Object.keys(options).length === 0 ? {} : { providerOptions: { openai: options } };
  },

  usageOf: (raw) => ({
    inputTokens: figure(raw, 'prompt_tokens'),
    cachedTokens: figure(memberOf(raw, 'prompt_tokens_details'), 'cached_tokens'),
    outputTokens: figure(raw, 'completion_tokens'),
    reasoningTokens: figure(memberOf(raw, 'completion_tokens_details'), 'reasoning_tokens'),
  }),

  usageIn: (event) => memberOf(event, 'usage'),

  answers: openaiAnswers,

  faultOfRefusal(_status, body) {
    const error = memberOf(body, 'error');
    return faultOfCode(memberOf(error, 'code')) ?? faultOfCode(memberOf(error, 'type'));
  },
};

/** Any server with the same format. Derives nothing from model names (contract 8). */
export const selfHosted: Adapter = {
  ...openai,

  async languageModel({ model, ...settings }) {
    return await openai.languageModel({ ...settings, model: unknownModel, fetch: fetchForServer(model, settings) });
  },
};

/** A name unknown to the provider package, so that it leaves every setting unchanged. */
const unknownModel = 'model-of-the-server';

function fetchForServer(model: string, { apiKey, fetch }: Pick<ModelAccess, 'apiKey' | 'fetch'>): typeof fetch {
  return async (input, init = {}) => {
    const headers = new Headers(init.headers);
    // Without a key the request has no authorization header, rather than an empty one.
    if (apiKey === '') headers.delete('authorization');
    // The model is the first member, so the replacement cannot hit the text of the conversation.
    const body = String(init.body).replace(`"model":"${unknownModel}"`, () => `"model":${JSON.stringify(model)}`);
    return await fetch(input, { ...init, headers, body });
  };
}

function faultOfCode(code: unknown): ProviderFault | undefined {
  switch (code) {
    case 'model_not_found':
      return 'model_unknown';
    case 'insufficient_quota':
      return 'quota_exhausted';
    case 'context_length_exceeded':
    case 'exceed_context_size_error':
      return 'context_length_exceeded';
    case 'content_filter':
    case 'content_policy_violation':
      return 'content_filtered';
    default:
      return undefined;
  }
}
