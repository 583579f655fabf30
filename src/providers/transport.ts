import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { TimeSlice } from '../core/fairness/time-slice.ts';
import { traceHeaders } from '../core/trace.ts';
import { HttpClient } from '../outbound/http-client.ts';
import { streamed, unpacked, wholeAnswer } from './answer-body.ts';
import { answerLimits, hasMoreValuesInSlices } from './answer-limits.ts';
import type { FetchOptions, HttpExchange } from './http-exchange.ts';
import { withOriginals } from './json-placeholders.ts';

export interface Transport {
  /** A `fetch` for the provider packages. Records its progress in the exchange and sends at most one request. */
  fetchFor(exchange: HttpExchange, options: FetchOptions): typeof fetch;
  /** Closes the idle connections. */
  close(): void;
}

/** The response whose text its reader has. One instance, because making one takes time. */
const nothingToRead = new Response();

/** Ends a package's call that has nothing to read. One instance, because creating an error's stack takes time. */
const readAlready = new Error('the answer is read already');

/** Sends the calls of the provider packages over the connections. */
export function createTransport(connections: HttpClient = new HttpClient()): Transport {
  return {
    fetchFor: (exchange, { streaming, deadline, reader, beforeSend, onAnswering }) => {
      return async (input, init = {}) => {
        exchange.requests += 1;
        if (exchange.requests > 1) throw new Error('a second request of one call');
        const url = new URL(input instanceof Request ? input.url : input);
        const body = init.body instanceof Uint8Array ? init.body : withOriginals(String(init.body));
        // Writing it took milliseconds, and encoding takes more.
        if (body.length > answerLimits.longBytes) await new TimeSlice().rest();
        const headers = {
          ...fieldsOf(init.headers),
          ...traceHeaders(),
          // Compression delays a stream. Some servers compress anyway.
          'accept-encoding': 'identity',
        };
        const { response, release } = await connections.open(url, {
          headers,
          body,
          signal: init.signal ?? undefined,
          beforeSend,
          onSend: () => {
            exchange.left = true;
          },
        });
        try {
          deadline.heard();
          exchange.status = response.statusCode;
          const content = unpacked(response);
          content.once('end', () => (exchange.answered = true));
          const { passes } = reader;
          passes?.begin(exchange, response.headers);
          if (!isSuccess(response)) {
            exchange.refusal = await refusalOf(response, content);
          } else if (streaming && !(passes !== undefined && isJson(response))) {
            onAnswering?.(exchange.headers);
            return streamed(content, { exchange, deadline, release, reader });
          } else {
            content.on('data', deadline.heard);
            const { wholeBytes, wholeValues } = answerLimits;
            const { bytes, values } = passes?.limits ?? { bytes: wholeBytes, values: wholeValues };
            const answer = await collect(content, bytes);
            // Parsing a long answer takes milliseconds, and one turn of the event loop may receive several.
            if (answer.length > answerLimits.shortBytes) await new TimeSlice().rest();
            if (await hasMoreValuesInSlices(answer, values)) {
              throw new Error('the answer has too many values');
            }
            if (reader.passes !== undefined) {
              const isAnswer = await reader.passes.whole(answer);
              exchange.isForeign = !reader.passes.isKnown && exchange.refusal === undefined;
              // A client that reads a stream finds nothing in an answer that is not one.
              if (isAnswer && !streaming) return nothingToRead;
              throw new Error('no answer to pass on');
            }
            const read = wholeAnswer(answer, exchange, reader.adapter);
            if (read?.is === 'whole') {
              exchange.wholeAnswer = read.answer;
              throw readAlready;
            }
            if (read?.value !== undefined) return new Response(JSON.stringify(read.value));
          }
          throw new Error(`no answer, status ${exchange.status}`);
        } finally {
          if (!streaming || exchange.answered) release();
        }
      };
    },

    close: () => connections.close(),
  };
}

/** Packages write headers as an object, which needs no conversion. */
function fieldsOf(headers: RequestInit['headers']): Record<string, string> {
  return isFields(headers) ? headers : Object.fromEntries(new Headers(headers));
}

function isFields(headers: RequestInit['headers']): headers is Record<string, string> {
  return headers !== undefined && !(headers instanceof Headers) && !Array.isArray(headers);
}

function isJson({ headers }: IncomingMessage): boolean {
  return /^application\/(?:[\w.+-]+\+)?json\b/i.test(headers['content-type'] ?? '');
}

function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode <= 299;
}

/** Reads the whole body. Rejects if it is truncated or has more than `limit` bytes. */
function collect(response: Readable, limit: number): Promise<Buffer<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > limit) response.destroy(new Error('the answer is too large'));
    });
    response.once('end', () => resolve(Buffer.concat(chunks)));
    response.on('error', reject);
    // Created only when needed: an error's stack takes longer than everything else here.
    response.once('close', () => {
      if (!response.readableEnded) reject(new Error('the answer was cut'));
    });
  });
}

async function refusalOf(response: IncomingMessage, content: Readable): Promise<NonNullable<HttpExchange['refusal']>> {
  const retryAfter = response.headers['retry-after'];
  // Reads to the end, so that the connection can be reused. A failure here changes nothing.
  const body = await collect(content, answerLimits.errorBytes).catch(() => Buffer.alloc(0));
  return { status: response.statusCode ?? 0, retryAfter, body: body.toString('utf8'), hasBegun: false };
}
