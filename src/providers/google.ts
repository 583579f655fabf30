import { createGoogle } from '@ai-sdk/google';
import { type Adapter, promptMessage, systemFirst } from './adapter.ts';
import { googleAnswers } from './google-answers.ts';
import { figure, memberOf } from './members.ts';

/** Instructions are a separate field of the request. */
export const google: Adapter = {
  defaultBaseUrl: 'https://generativelanguage.googleapis.com/v1beta',

  // The name is a part of the URL's path: `gemini-3.8-flash`, `tunedModels/shop-7`.
  canBeModel: (model) => model.split('/').every((segment) => /^[\w.@-]+$/.test(segment) && !/^\.+$/.test(segment)),

  languageModel({ model, apiKey, baseUrl, fetch }) {
    return createGoogle({ apiKey, baseURL: baseUrl, fetch }).languageModel(model);
  },

  promptOf: (messages) => systemFirst(messages).map(promptMessage),

  usageOf(raw) {
    const prompt = figure(raw, 'promptTokenCount');
    const tools = figure(raw, 'toolUsePromptTokenCount') ?? 0;
    const text = figure(raw, 'candidatesTokenCount');
    const thoughts = figure(raw, 'thoughtsTokenCount');
    const total = figure(raw, 'totalTokenCount');
    const inputTokens = prompt === undefined ? undefined : prompt + tools;
    // The vendor leaves out the count of an empty answer. The total still contains it.
    const rest = inputTokens === undefined || total === undefined ? undefined : Math.max(0, total - inputTokens);
    const said = text === undefined && thoughts === undefined ? undefined : (text ?? 0) + (thoughts ?? 0);
    return { inputTokens, outputTokens: said ?? rest };
  },

  answers: googleAnswers,

  // Gateways that speak several formats write the usage of an error under the name of the others.
  usageIn: (event) => memberOf(event, 'usageMetadata') ?? memberOf(event, 'usage'),

  // This vendor answers 400 for an invalid key, and also for a conversation that is too long.
  faultOfRefusal(status, body) {
    if (status !== 400) return undefined;
    const error = memberOf(body, 'error');
    if (JSON.stringify(memberOf(error, 'details') ?? '').includes('"API_KEY_INVALID"')) return 'key_refused';
    return /\binput token count\b.*\bexceeds\b/.test(String(memberOf(error, 'message')))
      ? 'context_length_exceeded'
      : undefined;
  },
};
