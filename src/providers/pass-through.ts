import { createParser } from 'eventsource-parser';
import type { Adapter } from './adapter.ts';
import { type AnswerReader, errorIn, listOf, type ReadResult, type StreamReader, unknown } from './answer-reader.ts';
import { figure, memberOf, parsed } from './members.ts';
import { ModelRequest } from './model-request.ts';
import { openai } from './openai.ts';
import type { Answer, ModelCall, OnEvent, PassThroughRequest } from './port.ts';
import type { Transport } from './transport.ts';

/** Passes answers in the first provider's Responses format on unchanged. Reads only their ends and figures. */
const answers: AnswerReader = {
  whole(answer) {
    if (memberOf(answer, 'status') === 'failed') return errorIn(answer) ?? { is: 'error', status: 500 };
    return answerOf(Array.isArray(memberOf(answer, 'output')) ? answer : undefined) ?? errorIn(answer) ?? unknown;
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
    return answerOf(event) ?? unknown;
  }
}

function answerOf(value: unknown): ReadResult | undefined {
  return typeof value === 'object' && value !== null ? { is: 'answer', value } : undefined;
}

const openaiResponses: Pick<Adapter, 'answers' | 'usageIn' | 'usageOf' | 'faultOfRefusal'> = {
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

/** Sends a request in the Responses format unchanged, and passes its answer on. `url`: the vendor's base URL. */
export async function passThrough(
  call: ModelCall,
  { body, onEvent }: PassThroughRequest,
  { url, transport }: { url: string; transport: Transport },
): Promise<Answer> {
  const { apiKey, model, maxTokens } = call;
  const request = new ModelRequest(call, { adapter: openaiResponses, transport, streaming: onEvent !== undefined });
  return await request.run(async () => {
    const response = await request.fetch(`${url}/responses`, {
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, model, max_output_tokens: maxTokens }),
      signal: request.signal,
    });
    const passed =
      onEvent === undefined || response.body === null
        ? await response.json()
        : await passEvents(response.body, (event) => request.pass(() => onEvent(event)));
    return { text: '', toolCalls: [], finishReason: finishOfResponse(passed), usage: request.usage, passed };
  });
}

/** Passes the events of a stream on. Returns the response in the last one. */
async function passEvents(body: ReadableStream<Uint8Array>, onEvent: OnEvent): Promise<unknown> {
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

/** The finish reason of a response. */
function finishOfResponse(response: unknown): Answer['finishReason'] {
  const reason = memberOf(memberOf(response, 'incomplete_details'), 'reason');
  if (reason === 'max_output_tokens') return 'length';
  if (reason === 'content_filter') return 'content-filter';
  const calls = listOf(memberOf(response, 'output')).map((item) => String(memberOf(item, 'type')));
  return calls.some((type) => type.endsWith('_call')) ? 'tool-calls' : 'stop';
}
