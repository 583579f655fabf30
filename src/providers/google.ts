import { loadPart } from '../core/package-folder.ts';
import { type Adapter, promptMessage, systemFirst } from './adapter.ts';
import { errorIn, listOf, type ReadResult, type StreamReader, stringOr, unknown } from './answer-reader.ts';
import { figure, memberOf } from './members.ts';

/** Instructions are a separate field of the request. */
export const google: Adapter = {
  defaultBaseUrl: 'https://generativelanguage.googleapis.com/v1beta',

  // The name is part of the URL's path: `gemini-3.8-flash`, `tunedModels/shop-7`.
  canBeModel: (model) => model.split('/').every((segment) => /^[\w.@-]+$/.test(segment) && !/^\.+$/.test(segment)),

  async languageModel({ model, apiKey, baseUrl, fetch }) {
    const { createGoogle } = await loadPart(() => import('@ai-sdk/google'));
    return createGoogle({ apiKey, baseURL: baseUrl, fetch }).languageModel(model);
  },

  promptOf: (messages) => systemFirst(messages).map((message) => promptMessage(message, { outputOf })),

  optionsOf: ({ reasoningEffort }) => (reasoningEffort === undefined ? {} : { reasoning: reasoningEffort }),

  reasoningShown: (body) =>
    memberOf(memberOf(body, 'generationConfig'), 'thinkingConfig') === undefined
      ? undefined
      : { thinkingConfig: { includeThoughts: true } },

  sendsWholeCalls: true,

  lacks: ({ parallelToolCalls }) => (parallelToolCalls === false ? ['parallelToolCalls'] : []),

  finishReasons: {
    LANGUAGE: 'content-filter',
    IMAGE_PROHIBITED_CONTENT: 'content-filter',
    IMAGE_RECITATION: 'content-filter',
    UNEXPECTED_TOOL_CALL: 'error',
    TOO_MANY_TOOL_CALLS: 'error',
    MISSING_THOUGHT_SIGNATURE: 'error',
    MALFORMED_RESPONSE: 'error',
    NO_IMAGE: 'error',
    IMAGE_OTHER: 'error',
  },

  usageOf(raw) {
    const prompt = figure(raw, 'promptTokenCount');
    const tools = figure(raw, 'toolUsePromptTokenCount') ?? 0;
    const text = figure(raw, 'candidatesTokenCount');
    const thoughts = figure(raw, 'thoughtsTokenCount');
    const total = figure(raw, 'totalTokenCount');
    const inputTokens = prompt === undefined ? undefined : prompt + tools;
    // The vendor omits the count of an empty answer. The total still includes it.
    const rest = inputTokens === undefined || total === undefined ? undefined : Math.max(0, total - inputTokens);
    const generated = text === undefined && thoughts === undefined ? undefined : (text ?? 0) + (thoughts ?? 0);
    const cachedTokens = figure(raw, 'cachedContentTokenCount');
    return { inputTokens, cachedTokens, outputTokens: generated ?? rest, reasoningTokens: thoughts };
  },

  // Of `generateContent`: a stream sends several. Parts of unknown kinds are skipped.
  answers: { whole: read, stream: () => new ContentStream(), inputMember: 'args' },

  // Gateways that speak several formats put the usage of an error under another vendor's name.
  usageIn: (event) => memberOf(event, 'usageMetadata') ?? memberOf(event, 'usage'),

  // This vendor answers 400 for an invalid key as well as for a conversation that is too long.
  faultOfRefusal(status, body) {
    if (status !== 400) return undefined;
    const error = memberOf(body, 'error');
    if (JSON.stringify(memberOf(error, 'details') ?? '').includes('"API_KEY_INVALID"')) return 'key_refused';
    return /\binput token count\b.*\bexceeds\b/.test(String(memberOf(error, 'message')))
      ? 'context_length_exceeded'
      : undefined;
  },
};

/** One JSON value, because several responses to one call are an error. */
function outputOf(texts: readonly string[]) {
  return { type: 'json' as const, value: [...texts] };
}

class ContentStream implements StreamReader {
  isComplete = false;

  read(event: unknown): ReadResult {
    if (finishReasonOf(event) !== null || blockReasonOf(event) !== null) this.isComplete = true;
    return read(event);
  }
}

function read(answer: unknown): ReadResult {
  const candidates = memberOf(answer, 'candidates');
  const error = errorIn(answer);
  if (error !== undefined) return error;
  const blockReason = blockReasonOf(answer);
  const isKnown = Array.isArray(candidates) || blockReason !== null || memberOf(answer, 'usageMetadata') !== undefined;
  if (!isKnown) return unknown;
  const parts = listOf(memberOf(memberOf(listOf(candidates)[0], 'content'), 'parts')).flatMap(partOf);
  const candidate = { content: { parts }, finishReason: finishReasonOf(answer) };
  const value = {
    candidates: listOf(candidates).length === 0 ? [] : [candidate],
    ...(blockReason === null ? {} : { promptFeedback: { blockReason } }),
  };
  return { is: 'answer', value };
}

function finishReasonOf(answer: unknown): string | null {
  return stringOr(memberOf(listOf(memberOf(answer, 'candidates'))[0], 'finishReason'), null);
}

function blockReasonOf(answer: unknown): string | null {
  return stringOr(memberOf(memberOf(answer, 'promptFeedback'), 'blockReason'), null);
}

/** The part, if Annals uses it. The signature of a thought is sent back with its call. */
function partOf(part: unknown): object[] {
  const signature = memberOf(part, 'thoughtSignature');
  const signed = typeof signature === 'string' ? { thoughtSignature: signature } : {};
  const text = memberOf(part, 'text');
  if (typeof text === 'string') return [{ text, thought: memberOf(part, 'thought') === true, ...signed }];
  const call = memberOf(part, 'functionCall');
  const name = memberOf(call, 'name');
  if (typeof name !== 'string') return [];
  const id = stringOr(memberOf(call, 'id'), null);
  return [{ functionCall: { id, name, args: memberOf(call, 'args') ?? {} }, ...signed }];
}
