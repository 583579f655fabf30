import type { IncomingMessage } from 'node:http';
import { type Duplex, pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { TimeSlice } from '../core/fairness/time-slice.ts';
import type { Adapter } from './adapter.ts';
import { answerLimits, EventMeter } from './answer-limits.ts';
import type { StreamReader, WholeResult } from './answer-reader.ts';
import type { BodyReader, FetchOptions, HttpExchange } from './http-exchange.ts';
import { parsedAnswer } from './json-placeholders.ts';
import { laterUsage, parsed } from './members.ts';

type AnswerAdapter = Pick<Adapter, 'answers' | 'usageIn'>;

/** Callbacks for the progress of a stream. */
interface StreamProgress {
  /** Receives the usage object of each event. */
  onUsage(event: unknown): void;
  /** The vendor reports a failure. */
  onError(status: number, event: unknown): void;
}

/** Reads the events of a vendor's stream and writes those for the provider package. */
class AnswerStream implements BodyReader {
  readonly #decoder = new TextDecoder();
  readonly #parser = createParser({ onEvent: (event) => this.#onEvent(event) });
  readonly #reader: StreamReader;
  readonly #inputMember: string | undefined;
  readonly #progress: StreamProgress;
  #written = '';
  /** The start of a body without events, which may be a non-streamed answer. */
  #start = '';
  #hasEvents = false;
  #isOver = false;
  #isBroken = false;
  #isKnown = false;

  constructor({ answers }: Pick<Adapter, 'answers'>, progress: StreamProgress) {
    this.#reader = answers.stream();
    this.#inputMember = answers.inputMember;
    this.#progress = progress;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isComplete(): boolean {
    return this.#reader.isComplete && !this.#isBroken;
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Reads the next bytes. Returns events for the provider package. */
  read(bytes: Uint8Array): string {
    return this.#feed(this.#decoder.decode(bytes, { stream: true }));
  }

  /** Reads the last event, terminated by an empty line or not. */
  end(): string {
    const last = this.#feed(`${this.#decoder.decode()}\n\n`);
    // A server that does not stream sends one answer.
    return this.#hasEvents ? last : last + this.#feed(`data: ${this.#start.replaceAll(/[\r\n]+/g, ' ')}\n\n`);
  }

  #feed(text: string): string {
    if (!this.#hasEvents && this.#start.length < answerLimits.eventBytes) this.#start += text;
    if (!this.#isOver) this.#parser.feed(text);
    const written = this.#written;
    this.#written = '';
    return written;
  }

  #onEvent({ data, event: name }: EventSourceMessage): void {
    this.#hasEvents = true;
    for (const text of messagesIn(data)) {
      if (this.#isOver) return;
      if (text.trim() === '[DONE]') {
        this.#isKnown = true;
        this.#isOver = true;
        this.#write(this.#reader.done?.());
        return;
      }
      const event = parsedAnswer(text, this.#inputMember);
      // An event of an unknown type need not be JSON.
      if (event === undefined) this.#isBroken ||= name === undefined || name === 'message';
      else this.#onValue(event);
    }
  }

  #onValue(event: unknown): void {
    this.#progress.onUsage(event);
    const read = this.#reader.read(event);
    if (read.is === 'unknown') return;
    this.#isKnown = true;
    if (read.is === 'answer') {
      this.#write(read.value);
      return;
    }
    this.#isOver = true;
    this.#progress.onError(read.status, event);
  }

  #write(event: object | undefined): void {
    if (event !== undefined) this.#written += `data: ${JSON.stringify(event)}\n\n`;
  }
}

/** The messages of an event: none in a keep-alive, and one per line where a proxy has dropped the blank lines. */
export function messagesIn(data: string): readonly string[] {
  if (!data.includes('\n') || parsed(data) !== undefined) return data.trim() === '' ? [] : [data];
  return data.split('\n').filter((line) => line.trim() !== '');
}

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
  adapter: AnswerAdapter,
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

function answerStream(exchange: HttpExchange, adapter: AnswerAdapter): AnswerStream {
  return new AnswerStream(adapter, {
    onUsage: (event) => addUsage(exchange, adapter.usageIn(event)),
    onError: (status, event) => {
      exchange.refusal = { status, retryAfter: undefined, body: JSON.stringify(event), hasBegun: true };
    },
  });
}

function addUsage(exchange: HttpExchange, usage: unknown): void {
  exchange.usage = laterUsage(exchange.usage, usage);
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
    reader,
  }: { exchange: HttpExchange; release: () => void } & Pick<FetchOptions, 'deadline' | 'reader'>,
): Response {
  const { passes } = reader;
  const answer = passes === undefined ? answerStream(exchange, reader.adapter) : passes;
  const maxEventBytes = passes === undefined ? answerLimits.eventBytes : answerLimits.passedBytes;
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
      if (length > answerLimits.streamBytes || event.isBeyond(piece, maxEventBytes)) {
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
