import { createParser } from 'eventsource-parser';
import type { Adapter } from './adapter.ts';
import { type AnswerReader, errorIn, listOf, type Read, type StreamReader, unknown } from './answer-reader.ts';
import { figure, memberOf, parsed } from './members.ts';
import { openai } from './openai.ts';
import type { Answer, OnEvent } from './port.ts';

/** Passes the answers of the first provider's Responses format on as they are; only their ends and figures are read. */
const answers: AnswerReader = {
  whole(answer) {
    if (memberOf(answer, 'status') === 'failed') return errorIn(answer) ?? { is: 'error', status: 500 };
    return passed(Array.isArray(memberOf(answer, 'output')) ? answer : undefined) ?? errorIn(answer) ?? unknown;
  },
  stream: () => new ResponseStream(),
};

class ResponseStream implements StreamReader {
  isComplete = false;

  read(event: unknown): Read {
    const type = memberOf(event, 'type');
    if (typeof type !== 'string') return errorIn(event) ?? unknown;
    if (type === 'error' || type === 'response.failed') {
      return errorIn(type === 'error' ? event : memberOf(event, 'response')) ?? { is: 'error', status: 500 };
    }
    if (type === 'response.completed' || type === 'response.incomplete') this.isComplete = true;
    return passed(event) ?? unknown;
  }
}

function passed(value: unknown): Read | undefined {
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

/** Passes the events of a stream on. Returns the response that the last one has. */
export async function passEvents(body: ReadableStream<Uint8Array>, onEvent: OnEvent): Promise<unknown> {
  const read: unknown[] = [];
  let response: unknown;
  const parser = createParser({ onEvent: ({ data }) => void read.push(parsed(data)) });
  const decoder = new TextDecoder();
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    for (const event of read.splice(0)) {
      if (typeof event !== 'object' || event === null) continue;
      response = memberOf(event, 'response') ?? response;
      await onEvent(event);
    }
  }
  return response;
}

/** Why a response ends. */
export function finishOfResponse(response: unknown): Answer['finishReason'] {
  const reason = memberOf(memberOf(response, 'incomplete_details'), 'reason');
  if (reason === 'max_output_tokens') return 'length';
  if (reason === 'content_filter') return 'content-filter';
  const calls = listOf(memberOf(response, 'output')).map((item) => String(memberOf(item, 'type')));
  return calls.some((type) => type.endsWith('_call')) ? 'tool-calls' : 'stop';
}
