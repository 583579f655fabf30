import { answerLimits } from './answer-limits.ts';
import { defaultStatus, errorStatus, listOf } from './answer-reader.ts';
import { figure, memberOf } from './members.ts';
import { ModelRequest } from './model-request.ts';
import { openai } from './openai.ts';
import { finishReasonOf } from './openai-answers.ts';
import { PassedAnswer, type PassedEnds, type PassedFormat } from './passed-answer.ts';
import { countTokens, messages } from './passed-messages.ts';
import type { Answer, ModelCall, PassedOperation, PassThroughRequest } from './port.ts';
import type { Transport } from './transport.ts';

/** A server may have no key. */
function requiredHeaders(apiKey: string): Record<string, string> {
  return apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` };
}

const chat: PassedFormat = {
  requiredHeaders,
  isAnswer: (answer) => Array.isArray(memberOf(answer, 'choices')),
  statusOfError: (value) => (listOf(memberOf(value, 'choices')).length === 0 ? errorStatus(value) : undefined),
  isEvent: (event) => Array.isArray(memberOf(event, 'choices')),
  hasPart: (event) => listOf(memberOf(event, 'choices')).some((choice) => hasContent(memberOf(choice, 'delta'))),
  isUsageAlone: (event) =>
    Array.isArray(memberOf(event, 'choices')) &&
    listOf(memberOf(event, 'choices')).length === 0 &&
    hasContent(memberOf(event, 'usage')),
  ends: () => new ChoiceEnds(),
  finishOf(value) {
    const [choice] = listOf(memberOf(value, 'choices'));
    return finishReasonOf(choice);
  },
  usageIn: (event) => memberOf(event, 'usage'),
  usageOf: openai.usageOf,
  faultOfRefusal: (status, body) => openai.faultOfRefusal?.(status, body),
};

/** A stream is complete once each of its choices has a finish reason: some servers send no end mark. */
class ChoiceEnds implements PassedEnds {
  readonly #open = new Set<unknown>();
  #hasEnded = false;

  get isComplete(): boolean {
    return this.#hasEnded && this.#open.size === 0;
  }

  read(event: unknown): void {
    for (const choice of listOf(memberOf(event, 'choices'))) {
      const index = memberOf(choice, 'index') ?? 0;
      if (finishReasonOf(choice) === undefined) {
        this.#open.add(index);
      } else {
        this.#open.delete(index);
        this.#hasEnded = true;
      }
    }
  }
}

/** Whether an object has a member other than `role` that is not empty. */
function hasContent(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(
    ([name, member]) =>
      name !== 'role' && member !== null && member !== '' && !(Array.isArray(member) && member.length === 0),
  );
}

const responses: PassedFormat = {
  requiredHeaders,
  isAnswer: (answer) => Array.isArray(memberOf(answer, 'output')),
  statusOfError(value) {
    const type = memberOf(value, 'type');
    if (type === 'error') return errorStatus(value) ?? defaultStatus;
    if (type === 'response.failed') return errorStatus(memberOf(value, 'response')) ?? defaultStatus;
    if (memberOf(value, 'status') === 'failed') return errorStatus(value) ?? defaultStatus;
    return Array.isArray(memberOf(value, 'output')) || typeof type === 'string' ? undefined : errorStatus(value);
  },
  isEvent: (event) => String(memberOf(event, 'type')).startsWith('response.'),
  hasPart: (event) => String(memberOf(event, 'type')).endsWith('.delta'),
  isUsageAlone: () => false,
  ends: () => new ResponseEnd(),
  finishOf(value) {
    const response = memberOf(value, 'response') ?? value;
    if (!Array.isArray(memberOf(response, 'output'))) return undefined;
    const reason = memberOf(memberOf(response, 'incomplete_details'), 'reason');
    if (reason === 'max_output_tokens') return 'length';
    if (reason === 'content_filter') return 'content-filter';
    const calls = listOf(memberOf(response, 'output')).map((item) => String(memberOf(item, 'type')));
    return calls.some((type) => type.endsWith('_call')) ? 'tool-calls' : 'stop';
  },
  usageIn: (event) => memberOf(memberOf(event, 'response'), 'usage') ?? memberOf(event, 'usage'),
  usageOf: (raw) => ({
    inputTokens: figure(raw, 'input_tokens'),
    cachedTokens: figure(memberOf(raw, 'input_tokens_details'), 'cached_tokens'),
    outputTokens: figure(raw, 'output_tokens'),
    reasoningTokens: figure(memberOf(raw, 'output_tokens_details'), 'reasoning_tokens'),
  }),
  faultOfRefusal: (status, body) =>
    openai.faultOfRefusal?.(status, body) ?? openai.faultOfRefusal?.(status, memberOf(body, 'response')),
};

class ResponseEnd implements PassedEnds {
  isComplete = false;

  read(event: unknown): void {
    const type = memberOf(event, 'type');
    if (type === 'response.completed' || type === 'response.incomplete') this.isComplete = true;
  }
}

const embeddings: PassedFormat = {
  requiredHeaders,
  isAnswer: (answer) => Array.isArray(memberOf(answer, 'data')),
  statusOfError: (value) => (Array.isArray(memberOf(value, 'data')) ? undefined : errorStatus(value)),
  isEvent: () => false,
  hasPart: () => false,
  isUsageAlone: () => false,
  ends: () => new ChoiceEnds(),
  finishOf: () => undefined,
  usageIn: (answer) => memberOf(answer, 'usage'),
  usageOf(raw) {
    const inputTokens = figure(raw, 'prompt_tokens') ?? figure(raw, 'total_tokens');
    return { inputTokens, outputTokens: inputTokens === undefined ? undefined : 0 };
  },
  faultOfRefusal: (status, body) => openai.faultOfRefusal?.(status, body),
  limits: { bytes: answerLimits.embeddingsBytes, values: answerLimits.embeddingsValues },
};

const formats: Readonly<Record<PassedOperation, PassedFormat>> = {
  'chat/completions': chat,
  responses,
  embeddings,
  messages,
  'messages/count_tokens': countTokens,
};

/**
 * Sends a request in the vendor's own format, and passes its answer on as it was sent. Reads only its end and its
 * figures. `url`: the vendor's base URL.
 */
export async function passThrough(
  call: ModelCall,
  passed: PassThroughRequest,
  { url, transport }: { url: string; transport: Transport },
): Promise<Answer> {
  const { apiKey, provider, maxTokens } = call;
  const { operation, onText, query = '' } = passed;
  const format = formats[operation];
  const isServerOfTenant = provider === 'self_hosted';
  const answer = new PassedAnswer({ format, apiKey, isServerOfTenant, hidesUsage: passed.hidesUsage });
  const streaming = onText !== undefined;
  const request = new ModelRequest(call, { adapter: format, transport, streaming, reader: { passes: answer } });
  return await request.run(async () => {
    const response = await request.fetch(`${url}/${operation}${query}`, {
      headers: {
        'content-type': 'application/json',
        accept: streaming ? 'text/event-stream' : 'application/json',
        ...format.requiredHeaders(apiKey),
        ...passed.headers,
      },
      body: passed.bytes(maxTokens),
      signal: request.signal,
    });
    if (streaming && response.body !== null) {
      const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
      for await (const bytes of response.body) {
        const part = decoder.decode(bytes, { stream: true });
        await request.pass(() => onText(part, answer.hasPart));
      }
    }
    const { usage, headers } = request;
    const { finishReason = 'stop', text } = answer;
    return { text: '', toolCalls: [], finishReason, usage, passed: { text, headers } };
  });
}
