import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { TimeSlice } from '../core/fairness/time-slice.ts';
import { JsonMeter } from '../core/json/measure.ts';
import { productVersion } from '../core/package-folder.ts';
import { traceHeaders } from '../core/trace.ts';
import type { HttpClient, OpenResponse } from '../outbound/http-client.ts';
import { unpacked } from './answer-body.ts';
import { answerLimits } from './answer-limits.ts';
import { type CallDeadline, startDeadline } from './deadline.ts';
import { memberOf, parsed } from './members.ts';

/** Limits on a tool server's answer to one call. The server belongs to a tenant and can send anything. */
export const toolAnswerLimits = {
  /** Milliseconds. */
  time: 30_000,
  bytes: 1_048_576,
  /** JSON values. Parsing them blocks the event loop. */
  values: 10_000,
  /** Levels of nested arrays and objects. */
  levels: 100,
  /** Events of a stream. */
  events: 1_000,
} as const;

/** Why a call of a tool server has no answer. */
export type ToolFault =
  /** The address is refused or does not answer, or the answer is a redirect. */
  | 'unreachable'
  | 'timeout'
  | 'too_large'
  /** The answer is truncated or violates the protocol. */
  | 'bad_answer'
  /** The server refuses the request, with an HTTP status or a protocol error. */
  | 'refused'
  | 'cancelled';

/** A call of a tool server, of one or more requests. The limits apply to all of them together. */
export class ToolExchange {
  /** Bytes of the answers. */
  bytes = 0;
  values = 0;
  events = 0;
  #fault: ToolFault | undefined;
  readonly #controller = new AbortController();

  /** The first fault. */
  get fault(): ToolFault | undefined {
    return this.#fault;
  }

  /** Aborted with the first fault, because the package would wait for an answer that cannot arrive. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  fail(fault: ToolFault): void {
    this.#fault ??= fault;
    this.#controller.abort();
  }
}

/**
 * A `fetch` for the protocol's package: POST only, no redirects, answers within the limits. `exchange`: the call of a
 * request; `time`: its milliseconds. Notes the fault, then rejects or fails the body.
 */
export function toolFetch(connections: HttpClient, exchange: () => ToolExchange, time: number = toolAnswerLimits.time) {
  return async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    // No listening stream, and sessions are left to their servers.
    if (init.method !== 'POST') return new Response(null, { status: 405 });
    const call = exchange();
    const deadline = startDeadline({ silence: time, total: time }, init.signal ?? undefined);
    let answer: OpenResponse | undefined;
    const end = () => {
      answer?.release();
      deadline.end();
    };
    try {
      answer = await connections.open(new URL(input), {
        headers: {
          'user-agent': `Annals/${productVersion()}`,
          ...Object.fromEntries(new Headers(init.headers)),
          ...traceHeaders(),
          'accept-encoding': 'identity',
        },
        body: String(init.body),
        signal: deadline.signal,
      });
      return await answerOf(answer.response, { call, deadline, end, id: idOf(String(init.body)) });
    } catch (error) {
      call.fail(stopOf(deadline) ?? (answer === undefined ? 'unreachable' : 'bad_answer'));
      answer?.response.destroy();
      end();
      throw error;
    }
  };
}

interface Reading {
  readonly call: ToolExchange;
  readonly deadline: CallDeadline;
  readonly end: () => void;
  /** Of the request; undefined where it expects no answer. */
  readonly id: unknown;
}

async function answerOf(response: IncomingMessage, reading: Reading): Promise<Response> {
  const { call, end } = reading;
  const { statusCode: status = 0, headers } = response;
  if (status < 200 || (status >= 300 && status <= 399)) {
    call.fail('unreachable');
    throw new Error('the server redirects');
  }
  const forwarded = new Headers();
  for (const name of ['content-type', 'mcp-session-id']) {
    const value = headers[name];
    if (typeof value === 'string') forwarded.set(name, value);
  }
  const content = unpacked(response);
  if (status === 204) {
    content.resume();
    end();
    return new Response(null, { status, headers: forwarded });
  }
  if (/^text\/event-stream\b/i.test(headers['content-type'] ?? '')) {
    return new Response(streamOf(events(content, reading)), { status, headers: forwarded });
  }
  let text = '';
  for await (const part of texts(content, reading)) text += part;
  measure(call, text);
  await restAfter(text);
  return new Response(text, { status, headers: forwarded });
}

/** Reads the answer. Throws if it is too long, truncated or late, and notes that. */
async function* texts(content: Readable, { call, deadline, end }: Reading): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  try {
    for await (const chunk of content as AsyncIterable<Buffer>) {
      call.bytes += chunk.length;
      if (call.bytes > toolAnswerLimits.bytes) throw tooLarge(call);
      yield decoder.decode(chunk, { stream: true });
    }
    yield decoder.decode();
  } catch (error) {
    call.fail(stopOf(deadline) ?? 'bad_answer');
    throw error;
  } finally {
    content.destroy();
    end();
  }
}

/** The events of a stream, each checked before the package reads it. */
async function* events(content: Readable, reading: Reading): AsyncGenerator<Uint8Array, void> {
  const { call, id: requestId } = reading;
  let isAnswered = requestId === undefined;
  const found: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => void found.push(event) });
  for await (const text of texts(content, reading)) {
    parser.feed(text);
    for (const { event, id, data } of found.splice(0)) {
      call.events += 1;
      if (call.events > toolAnswerLimits.events) throw tooLarge(call);
      measure(call, data);
      isAnswered ||= isAnswerTo(requestId, data);
      await restAfter(data);
      const lines = [...(event === undefined ? [] : [`event: ${event}`]), ...(id === undefined ? [] : [`id: ${id}`])];
      yield Buffer.from(`${[...lines, ...data.split('\n').map((line) => `data: ${line}`)].join('\n')}\n\n`);
    }
  }
  if (!isAnswered) call.fail('bad_answer');
}

function streamOf(parts: AsyncGenerator<Uint8Array, void>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await parts.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await parts.return();
    },
  });
}

/** The id of a JSON-RPC request. */
function idOf(text: string): unknown {
  return memberOf(parsed(text), 'id');
}

function isAnswerTo(id: unknown, data: string): boolean {
  const message = parsed(data);
  return memberOf(message, 'id') === id && memberOf(message, 'method') === undefined;
}

/** Yields the event loop, because the package parses the text next, which takes milliseconds. */
async function restAfter(text: string): Promise<void> {
  if (text.length > answerLimits.shortBytes) await new TimeSlice().rest();
}

function measure(call: ToolExchange, text: string): void {
  const { levels, values } = toolAnswerLimits;
  const meter = new JsonMeter(text, { maxDepth: levels, maxValues: values - call.values });
  meter.read(text.length);
  call.values += meter.values;
  if (meter.isTooDeep || call.values > values) throw tooLarge(call);
}

function tooLarge(call: ToolExchange): Error {
  call.fail('too_large');
  return new Error('the answer is too large');
}

function stopOf(deadline: CallDeadline): 'timeout' | 'cancelled' | undefined {
  const reason = deadline.reason();
  return reason === 'aborted' ? 'cancelled' : reason;
}
