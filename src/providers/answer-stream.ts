import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Adapter } from './adapter.ts';
import { answerLimits } from './answer-limits.ts';
import type { StreamReader } from './answer-reader.ts';
import { parsedAnswer } from './json-placeholders.ts';
import { parsed } from './members.ts';

/** Callbacks for the progress of a stream. */
export interface StreamProgress {
  /** Receives the usage object of each event. */
  onUsage(event: unknown): void;
  /** The vendor reports a failure. */
  onError(status: number, event: unknown): void;
}

/** Reads the events of a vendor's stream and writes those for the provider package. */
export class AnswerStream {
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

  /** Whether the end mark or an error has been read. What follows is ignored. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the vendor has marked the answer as complete. */
  get isComplete(): boolean {
    return this.#reader.isComplete && !this.#isBroken;
  }

  /** Whether any event was in the vendor's format. */
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
function messagesIn(data: string): readonly string[] {
  if (!data.includes('\n') || parsed(data) !== undefined) return data.trim() === '' ? [] : [data];
  return data.split('\n').filter((line) => line.trim() !== '');
}
