import type { IncomingMessage } from 'node:http';
import { type Duplex, pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { TimeSlice } from '../core/concurrency/time-slice.ts';
import { answerLimits, EventMeter } from './answer-limits.ts';
import type { ReadWhole } from './answer-reader.ts';
import { AnswerStream } from './answer-stream.ts';
import { parsedAnswer } from './carried-json.ts';
import type { FetchOptions, HttpExchange } from './http-exchange.ts';

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
  const answer = parsedAnswer(body, answers.inputMember);
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
 * The body of a stream, read only as fast as it is taken, in turns with other tenants (docs/decisions/fairness.md). A stream that is cut
 * ends normally, and the exchange records the cut. If it failed instead, the parts that the reader has not read yet would be lost.
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
  const answer = answerStream(exchange, adapter);
  const pieces = new Pieces(content, deadline);
  const event = new EventMeter();
  let isOpen = true;
  let length = 0;

  function end(controller: ReadableStreamDefaultController<Uint8Array>): void {
    if (!isOpen) return;
    isOpen = false;
    exchange.cut = !answer.isComplete;
    release();
    controller.close();
  }

  async function pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const write = (text: string) => {
      if (text !== '') controller.enqueue(Buffer.from(text));
    };
    while (isOpen && (controller.desiredSize ?? 0) > 0) {
      const piece = await pieces.next();
      if (!isOpen) return;
      if (piece === undefined) {
        if (content.readableEnded) {
          write(answer.end());
          exchange.isForeign = !answer.isKnown;
        }
        end(controller);
        return;
      }
      length += piece.length;
      if (length > answerLimits.streamBytes || event.isBeyond(piece, answerLimits.eventBytes)) {
        end(controller);
        content.destroy();
        return;
      }
      write(answer.read(piece));
      if (!answer.isOver) continue;
      end(controller);
      await pieces.leave();
      dropRest(content);
    }
  }

  // A reader learns of it when it has read what came before.
  content.on('error', () => {});
  const body = new ReadableStream<Uint8Array>({
    pull,
    cancel() {
      isOpen = false;
      release();
      content.destroy();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

/** What comes, in pieces of some ten events: a piece costs the event loop far more than its bytes tell. */
class Pieces {
  readonly #chunks: NodeJS.AsyncIterator<Buffer>;
  readonly #deadline: FetchOptions['deadline'];
  readonly #slice = new TimeSlice();
  #unread: Buffer = Buffer.alloc(0);

  constructor(content: Readable, deadline: FetchOptions['deadline']) {
    this.#chunks = content.iterator({ destroyOnReturn: false });
    this.#deadline = deadline;
  }

  /** Undefined after the last one, and where the rest never comes. The silence of the provider counts only while this waits for it. */
  async next(): Promise<Buffer | undefined> {
    if (this.#unread.length === 0) {
      this.#deadline.heard();
      const { value, done } = await this.#chunks.next().catch(() => ({ value: undefined, done: true }));
      this.#deadline.paused();
      if (done === true || value === undefined) return undefined;
      this.#unread = value;
    }
    // The answer is read on for the quota after its client has gone, which is why a rest rejects.
    if (this.#slice.isDue) await this.#slice.rest().catch(() => {});
    const piece = this.#unread.subarray(0, answerLimits.pieceBytes);
    this.#unread = this.#unread.subarray(answerLimits.pieceBytes);
    return piece;
  }

  /** Leaves what was not read to others. */
  async leave(): Promise<void> {
    await this.#chunks.return?.();
  }
}

/** Nothing counts after the end of an answer. Its connection is used again if the rest comes soon. */
function dropRest(content: Readable): void {
  content.resume();
  const timer = setTimeout(() => content.destroy(), maxRest).unref();
  content.once('close', () => clearTimeout(timer));
}
