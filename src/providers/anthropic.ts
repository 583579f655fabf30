import { loadPart } from '../core/own-part.ts';
import { type Adapter, promptMessage, type Reasoning, systemFirst } from './adapter.ts';
import { stringOr } from './answer-reader.ts';
import { anthropicAnswers } from './anthropic-answers.ts';
import { figure, memberOf, parsed } from './members.ts';

/** Instructions are a separate field of the request. */
export const anthropic: Adapter = {
  defaultBaseUrl: 'https://api.anthropic.com/v1',

  async languageModel({ model, apiKey, baseUrl, fetch }) {
    const { createAnthropic } = await loadPart(() => import('@ai-sdk/anthropic'));
    return createAnthropic({ apiKey, baseURL: baseUrl, fetch }).languageModel(model);
  },

  promptOf: (messages) => systemFirst(messages).map((message) => promptMessage(message, { reasoningOf, outputOf })),

  optionsOf: ({ parallelToolCalls, reasoningEffort, tools = [] }) => ({
    ...(reasoningEffort === undefined ? {} : { reasoning: reasoningEffort }),
    providerOptions: {
      anthropic: parallelToolCalls === false && tools.length > 0 ? { disableParallelToolUse: true } : {},
    },
  }),

  thinkingBudget: {
    in: (body) => figure(memberOf(body, 'thinking'), 'budget_tokens'),
    of: (budgetTokens) => ({ thinking: { type: 'enabled', budgetTokens } }),
    min: 1_024,
  },

  // Thinking must be sent back unchanged with its tool calls.
  signatureIn: (reasoning) => (reasoning.length === 0 ? undefined : JSON.stringify(reasoning)),

  reasoningOf,

  finishReasons: { pause_turn: 'other' },

  refusedBecause(reason, metadata) {
    if (reason !== 'refusal') return undefined;
    const explanation = memberOf(memberOf(memberOf(metadata, 'anthropic'), 'stopDetails'), 'explanation');
    return stringOr(explanation, '') || 'The model refused to answer.';
  },

  usageOf(raw) {
    const fresh = figure(raw, 'input_tokens');
    const cacheWriteTokens = figure(raw, 'cache_creation_input_tokens');
    const cachedTokens = figure(raw, 'cache_read_input_tokens');
    return {
      inputTokens: fresh === undefined ? undefined : fresh + (cacheWriteTokens ?? 0) + (cachedTokens ?? 0),
      cachedTokens,
      cacheWriteTokens,
      outputTokens: figure(raw, 'output_tokens'),
    };
  },

  // The vendor has no error code for this case, only a sentence.
  faultOfRefusal: (status, body) =>
    status === 400 && /^prompt is too long\b/.test(String(memberOf(memberOf(body, 'error'), 'message')))
      ? 'context_length_exceeded'
      : undefined,

  answers: anthropicAnswers,

  usageIn: (event) => memberOf(event, 'usage') ?? memberOf(memberOf(event, 'message'), 'usage'),
};

function outputOf(texts: readonly string[]) {
  return { type: 'content' as const, value: texts.map((text) => ({ type: 'text' as const, text })) };
}

function reasoningOf(signature: string): readonly Reasoning[] {
  const blocks = parsed(signature);
  return Array.isArray(blocks) ? blocks : [];
}
