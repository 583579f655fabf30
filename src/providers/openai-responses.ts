import type { Adapter } from './adapter.ts';
import { type AnswerReader, errorIn, type ReadResult, type StreamReader, unknown } from './answer-reader.ts';
import { figure, memberOf } from './members.ts';
import { openai } from './openai.ts';

/** Passes answers in the first provider's Responses format on unchanged. Reads only their ends and figures. */
const answers: AnswerReader = {
  whole(answer) {
    if (memberOf(answer, 'status') === 'failed') return errorIn(answer) ?? { is: 'error', status: 500 };
    return passed(Array.isArray(memberOf(answer, 'output')) ? answer : undefined) ?? errorIn(answer) ?? unknown;
  },
  stream: () => new ResponseStream(),
};

class ResponseStream implements StreamReader {
  isComplete = false;

  read(event: unknown): ReadResult {
    const type = memberOf(event, 'type');
    if (typeof type !== 'string') return errorIn(event) ?? unknown;
    if (type === 'error' || type === 'response.failed') {
      return errorIn(type === 'error' ? event : memberOf(event, 'response')) ?? { is: 'error', status: 500 };
    }
    if (type === 'response.completed' || type === 'response.incomplete') this.isComplete = true;
    return passed(event) ?? unknown;
  }
}

function passed(value: unknown): ReadResult | undefined {
  return typeof value === 'object' && value !== null ? { is: 'answer', value } : undefined;
}

export const openaiResponses: Pick<Adapter, 'answers' | 'usageIn' | 'usageOf' | 'faultOfRefusal'> = {
  answers,

  usageIn: (event) => memberOf(memberOf(event, 'response'), 'usage') ?? memberOf(event, 'usage'),

  usageOf: (raw) => ({
    inputTokens: figure(raw, 'input_tokens'),
    cachedTokens: figure(memberOf(raw, 'input_tokens_details'), 'cached_tokens'),
    outputTokens: figure(raw, 'output_tokens'),
    reasoningTokens: figure(memberOf(raw, 'output_tokens_details'), 'reasoning_tokens'),
  }),

  faultOfRefusal: (status, body) => openai.faultOfRefusal?.(status, body),
};
