import type { IncomingMessage } from 'node:http';
import { type Duplex, pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { TimeSlice } from '../core/fairness/time-slice.ts';
import { answerLimits, EventMeter } from './answer-limits.ts';
import type { WholeResult } from './answer-reader.ts';
import { AnswerStream } from './answer-stream.ts';
import type { FetchOptions, HttpExchange } from './http-exchange.ts';
import { parsedAnswer } from './json-placeholders.ts';

// Milliseconds after the end of an answer within which its connection must end.
const maxRest = 1_000;

/** The decoded content of an answer. Limits apply to the decoded bytes, because some servers compress unasked. */
export function unpacked(response: IncomingMessage): Readable {
  const unpack = unpackers[response.headers['content-encoding']?.trim().toLowerCase() ?? '']?.();
  // A failure destroys both, which reads like a truncated body.
  return unpack === undefined ? response : pipeline(response, unpack, () => {});
}

const unpackers: Readonly<Record<string, (() => Duplex) | undefined>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
};

/** A non-streamed answer, read by our own reader or else for the provider package; undefined where it is malformed. */
export function wholeAnswer(
  content: Buffer,
  exchange: HttpExchange,
  adapter: FetchOptions['adapter'],
): Extract<WholeResult, { is: 'answer' | 'whole' }> | undefined {
  const { answers, usageIn } = adapter;
  const body = content.toString('utf8');
  const answer = parsedAnswer(body, answers.inputMember);
  if (answer === undefined) {
    // A server that streams unrequested still speaks the vendor's format.
    const stream = answerStream(exchange, adapter);
    stream.read(content);
    stream.end();
    exchange.isForeign = !stream.isKnown;
    return undefined;
  }
  addUsage(exchange, usageIn(answer));
  // A long answer may have far more tool calls than are ever run.
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
 * The body of a stream, read no faster than it is consumed, in time slices shared with other tenants
 * (docs/decisions/fairness.md). A cut stream ends normally, noted in the exchange: an error would drop buffered parts.
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

  // The reader sees the error after the content before it.
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

/** Batches the chunks into pieces of some ten events, because each costs the event loop far more than its bytes. */
class Pieces {
  readonly #chunks: NodeJS.AsyncIterator<Buffer>;
  readonly #deadline: FetchOptions['deadline'];
  readonly #slice = new TimeSlice();
  #unread: Buffer = Buffer.alloc(0);

  constructor(content: Readable, deadline: FetchOptions['deadline']) {
    this.#chunks = content.iterator({ destroyOnReturn: false });
    this.#deadline = deadline;
  }

  /** Undefined at the end or after a cut. Only the wait in here counts as the provider's silence. */
  async next(): Promise<Buffer | undefined> {
    if (this.#unread.length === 0) {
      this.#deadline.heard();
      const { value, done } = await this.#chunks.next().catch(() => ({ value: undefined, done: true }));
      this.#deadline.paused();
      if (done === true || value === undefined) return undefined;
      this.#unread = value;
    }
    // A rest rejects once its client has gone. The answer is still read, for the quota.
    if (this.#slice.isDue) await this.#slice.rest().catch(() => {});
    const piece = this.#unread.subarray(0, answerLimits.pieceBytes);
    this.#unread = this.#unread.subarray(answerLimits.pieceBytes);
    return piece;
  }

  /** Discards what was not read. */
  async leave(): Promise<void> {
    await this.#chunks.return?.();
  }
}

/** Discards the bytes after the end of an answer. Its connection is reused if they end soon. */
function dropRest(content: Readable): void {
  content.resume();
  const timer = setTimeout(() => content.destroy(), maxRest).unref();
  content.once('close', () => clearTimeout(timer));
}
