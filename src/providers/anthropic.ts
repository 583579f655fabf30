import { loadPart } from '../core/package-folder.ts';
import { type Adapter, cacheControlOf, promptMessage, type Reasoning, systemFirst } from './adapter.ts';
import { type AnswerReader, errorIn, type ReadResult, type StreamReader, stringOr, unknown } from './answer-reader.ts';
import { figure, memberOf, parsed } from './members.ts';

// The package requires figures in its copy of the usage. Annals reads the vendor's.
const noUsage = { input_tokens: 0, output_tokens: 0 };

/** Reads the messages format. Skips blocks of unknown types. */
const anthropicAnswers: AnswerReader = {
  whole(answer) {
    const content = memberOf(answer, 'content');
    if (!Array.isArray(content)) return errorIn(answer) ?? unknown;
    return {
      is: 'answer',
      value: { type: 'message', content: content.flatMap(blockOf), ...stopOf(answer), usage: noUsage },
    };
  },

  stream: () => new MessageStream(),

  inputMember: 'input',
};

class MessageStream implements StreamReader {
  isComplete = false;
  readonly #passedOver = new Set<unknown>();

  read(event: unknown): ReadResult {
    const index = memberOf(event, 'index');
    switch (memberOf(event, 'type')) {
      case 'message_start':
        return { is: 'answer', value: { type: 'message_start', message: { usage: noUsage } } };
      case 'content_block_start': {
        const [block] = blockOf(memberOf(event, 'content_block'));
        if (block === undefined) this.#passedOver.add(index);
        else this.#passedOver.delete(index);
        return block === undefined
          ? { is: 'answer' }
          : blockEvent('content_block_start', index, { content_block: block });
      }
      case 'content_block_delta': {
        const delta = deltaOf(memberOf(event, 'delta'));
        if (delta === undefined || this.#passedOver.has(index)) return { is: 'answer' };
        return blockEvent('content_block_delta', index, { delta });
      }
      case 'content_block_stop':
        return this.#passedOver.has(index) ? { is: 'answer' } : blockEvent('content_block_stop', index, {});
      case 'message_delta': {
        const delta = stopOf(memberOf(event, 'delta'));
        if (delta.stop_reason !== null) this.isComplete = true;
        return { is: 'answer', value: { type: 'message_delta', delta, usage: noUsage } };
      }
      case 'message_stop':
        this.isComplete = true;
        return { is: 'answer', value: { type: 'message_stop' } };
      default:
        return errorIn(event) ?? unknown;
    }
  }
}

/** The stop reason of a message. */
function stopOf(of: unknown) {
  const explanation = memberOf(memberOf(of, 'stop_details'), 'explanation');
  return {
    stop_reason: stringOr(memberOf(of, 'stop_reason'), null),
    ...(typeof explanation === 'string' ? { stop_details: { type: 'refusal', explanation } } : {}),
  };
}

function blockEvent(type: string, index: unknown, rest: object): ReadResult {
  return { is: 'answer', value: { type, index, ...rest } };
}

/** The block, if Annals uses its type. */
function blockOf(block: unknown): object[] {
  const type = memberOf(block, 'type');
  if (type === 'text') return [{ type, text: stringOr(memberOf(block, 'text'), '') }];
  // Reasoning goes back to the vendor with the tool calls that follow it.
  if (type === 'thinking') {
    const [thinking, signature] = [memberOf(block, 'thinking'), memberOf(block, 'signature')];
    return [{ type, thinking: stringOr(thinking, ''), signature: stringOr(signature, '') }];
  }
  if (type === 'redacted_thinking') return [{ type, data: stringOr(memberOf(block, 'data'), '') }];
  const id = memberOf(block, 'id');
  const name = memberOf(block, 'name');
  if (type !== 'tool_use' || typeof id !== 'string' || typeof name !== 'string') return [];
  return [{ type, id, name, input: memberOf(block, 'input') ?? {} }];
}

function deltaOf(delta: unknown): object | undefined {
  const type = memberOf(delta, 'type');
  if (type === 'text_delta') return { type, text: stringOr(memberOf(delta, 'text'), '') };
  if (type === 'input_json_delta') return { type, partial_json: stringOr(memberOf(delta, 'partial_json'), '') };
  if (type === 'thinking_delta') return { type, thinking: stringOr(memberOf(delta, 'thinking'), '') };
  if (type === 'signature_delta') return { type, signature: stringOr(memberOf(delta, 'signature'), '') };
  return undefined;
}

/** Instructions are a separate field of the request. */
export const anthropic: Adapter = {
  defaultBaseUrl: 'https://api.anthropic.com/v1',

  async languageModel({ model, apiKey, baseUrl, fetch }) {
    const { createAnthropic } = await loadPart(() => import('@ai-sdk/anthropic'));
    return createAnthropic({ apiKey, baseURL: baseUrl, fetch }).languageModel(model);
  },

  promptOf: (messages) => systemFirst(messages).map((message) => promptMessage(message, { reasoningOf, outputOf })),

  optionsOf: ({ parallelToolCalls, reasoningEffort, tools = [], cache }) => ({
    ...(reasoningEffort === undefined ? {} : { reasoning: reasoningEffort }),
    providerOptions: {
      anthropic: {
        ...(parallelToolCalls === false && tools.length > 0 && { disableParallelToolUse: true }),
        ...(cache !== undefined && { cacheControl: cacheControlOf(cache) }),
      },
    },
  }),

  thinkingBudget: {
    in: (body) => figure(memberOf(body, 'thinking'), 'budget_tokens'),
    of: (budgetTokens) => ({ thinking: { type: 'enabled', budgetTokens } }),
    min: 1_024,
  },

  // Newer models leave their reasoning empty otherwise.
  reasoningShown: (body) =>
    memberOf(memberOf(body, 'thinking'), 'type') === 'adaptive'
      ? { thinking: { type: 'adaptive', display: 'summarized' } }
      : undefined,

  // With other schemas and models the package describes a tool instead.
  enforcesFormat: (body) => memberOf(memberOf(body, 'output_config'), 'format') !== undefined,

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
    const writes = memberOf(raw, 'cache_creation');
    const hourCacheWriteTokens = figure(writes, 'ephemeral_1h_input_tokens');
    const cacheWriteTokens = figure(raw, 'cache_creation_input_tokens') ?? sumOf(writes);
    const cachedTokens = figure(raw, 'cache_read_input_tokens');
    return {
      inputTokens: fresh === undefined ? undefined : fresh + (cacheWriteTokens ?? 0) + (cachedTokens ?? 0),
      cachedTokens,
      cacheWriteTokens,
      hourCacheWriteTokens,
      outputTokens: figure(raw, 'output_tokens'),
      reasoningTokens: figure(memberOf(raw, 'output_tokens_details'), 'thinking_tokens'),
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

/** The cache writes, where a gateway reports them by lifetime alone. */
function sumOf(writes: unknown): number | undefined {
  const figures = ['ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens'].map((name) => figure(writes, name));
  return figures.every((value) => value === undefined)
    ? undefined
    : figures.reduce<number>((sum, value = 0) => sum + value, 0);
}

function outputOf(texts: readonly string[]) {
  return { type: 'content' as const, value: texts.map((text) => ({ type: 'text' as const, text })) };
}

function reasoningOf(signature: string): readonly Reasoning[] {
  const blocks = parsed(signature);
  return Array.isArray(blocks) ? blocks : [];
}
