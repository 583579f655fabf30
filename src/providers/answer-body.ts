import type { IncomingMessage } from 'node:http';
import { type Duplex, pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { answerLimits, EventMeter } from './answer-limits.ts';
import type { ReadWhole } from './answer-reader.ts';
import { AnswerStream } from './answer-stream.ts';
import type { FetchOptions, HttpExchange } from './http-exchange.ts';
import { parsed } from './members.ts';

// Milliseconds in which the connection of an answer that has ended must end, too.
const maxRest = 1_000;

/** The content of an answer. Annals asks for it as it is, and unpacks what comes packed. Limits hold for what is unpacked. */
export function unpacked(response: IncomingMessage): Readable {
  const unpack = unpackers[response.headers['content-encoding']?.trim().toLowerCase() ?? '']?.();
  // A failure destroys both, which reads like a cut.
  return unpack === undefined ? response : pipeline(response, unpack, () => {});
}

const unpackers: Readonly<Record<string, (() => Duplex) | undefined>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
};

/** An answer in one piece, as our own reader or then the provider package reads it; undefined where it is none. */
export function wholeAnswer(
  content: Buffer,
  exchange: HttpExchange,
  adapter: FetchOptions['adapter'],
): Extract<ReadWhole, { is: 'answer' | 'whole' }> | undefined {
  const { answers, usageIn } = adapter;
  const body = content.toString('utf8');
  const answer = parsed(body);
  if (answer === undefined) {
    // A server that streams without having been asked to is a server of the vendor's kind.
    const stream = answerStream(exchange, adapter);
    stream.read(content);
    stream.end();
    exchange.isForeign = !stream.isKnown;
    return undefined;
  }
  addUsage(exchange, usageIn(answer));
  // A long answer may have far more tool calls than anybody runs.
  const maxToolCalls =
    content.length > answerLimits.shortBytes ? answerLimits.checkedToolCalls : answerLimits.toolCalls;
  const read = answers.whole(answer, maxToolCalls);
  if (read.is === 'answer' || read.is === 'whole') return read;
  if (read.is === 'error') exchange.refusal = { status: read.status, retryAfter: undefined, body, hasBegun: true };
  else exchange.isForeign = true;
  return undefined;
}

function answerStream(exchange: HttpExchange, adapter: FetchOptions['adapter']): AnswerStream {
  return new AnswerStream(adapter, {
    onUsage: (event) => addUsage(exchange, adapter.usageIn(event)),
    onError: (status, event) => {
      exchange.refusal = { status, retryAfter: undefined, body: JSON.stringify(event), hasBegun: true };
    },
  });
}

function addUsage(exchange: HttpExchange, usage: unknown): void {
  if (typeof usage === 'object' && usage !== null) exchange.usage = { ...exchange.usage, ...usage };
}

/**
 * The body of a stream. A stream that is cut ends normally, and the exchange records the cut. If it failed instead, the
 * parts that the reader has not read yet would be lost.
 */
export function streamed(
  content: Readable,
  {
    exchange,
    deadline,
    release,
    adapter,
  }: { exchange: HttpExchange; release: () => void } & Pick<FetchOptions, 'deadline' | 'adapter'>,
): Response {
  let isOpen = true;
  const answer = answerStream(exchange, adapter);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const event = new EventMeter();
      let length = 0;
      const write = (text: string) => {
        if (text !== '') controller.enqueue(Buffer.from(text));
      };
      const end = () => {
        if (!isOpen) return;
        isOpen = false;
        exchange.cut = !answer.isComplete;
        release();
        controller.close();
      };
      content.on('data', (chunk: Buffer) => {
        if (!isOpen) return;
        deadline.heard();
        length += chunk.length;
        if (length > answerLimits.streamBytes || event.isBeyond(chunk, answerLimits.eventBytes)) {
          end();
          content.destroy();
          return;
        }
        write(answer.read(chunk));
        if (answer.isOver) {
          end();
          dropRest(content);
          return;
        }
        if ((controller.desiredSize ?? 0) > 0) return;
        content.pause();
        deadline.paused();
      });
      content.once('end', () => {
        if (!isOpen) return;
        write(answer.end());
        exchange.isForeign = !answer.isKnown;
        end();
      });
      // This event follows an error, too.
      content.once('close', end);
      content.on('error', () => {});
    },
    pull() {
      deadline.heard();
      content.resume();
    },
    cancel() {
      isOpen = false;
      release();
      content.destroy();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

/** Nothing counts after the end of an answer. Its connection is used again if the rest comes soon. */
function dropRest(content: Readable): void {
  content.resume();
  const timer = setTimeout(() => content.destroy(), maxRest).unref();
  content.once('close', () => clearTimeout(timer));
}
