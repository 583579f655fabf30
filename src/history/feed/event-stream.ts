import { Readable, type Writable } from 'node:stream';
import type { Release } from '../../core/fairness/semaphore.ts';
import { AccessTokenFault } from '../../http/credentials.ts';
import { RestoredCursor } from './feed-cursor.ts';
import type { FeedItem, Matches } from './read-matches.ts';

/** The events of a portion as bytes. Readers of one channel have the same items, and share them. */
const bytesOf = new WeakMap<readonly FeedItem[], Buffer>();

function changeEvents(items: readonly FeedItem[]): Buffer {
  return bytesOf.getOrInsertComputed(items, () =>
    Buffer.from(items.map(({ cursor, text }) => `id: ${cursor}\nevent: change\ndata: ${text}\n\n`).join('')),
  );
}

function event(name: string, id: string, data: object): string {
  return `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Milliseconds after which a client reconnects. */
const retry = 5_000;
/** A client that has caught up is cut off with more unsent bytes (delivery 2). */
export const maxUnsent = 1024 * 1024;
/**
 * Bytes of a portion for a client that has not caught up, whose texts are its own. Nothing more is read while so many
 * are unsent. A single change may be longer; if `longPortions` has no room for it, the client reconnects with its last
 * id.
 */
export const maxPortionBytes = 64 * 1024;
export const longPortions = { places: 64 * 1024 * 1024, name: 'bytes of long changes of the feed' };
/** Positions, and milliseconds, without an event after which a client gets the position of the stream. */
const positionsOfSilence = 10_000;
export const silence = 15_000;
/** Milliseconds. The random spread keeps clients from reconnecting all at once. */
export const streamTime = { mean: 15 * 60_000, spread: 60_000 };
/** Milliseconds between checks of all streams of the process: of their time, silence and credentials. */
const checkEvery = 1_000;

interface EventStreamOptions {
  readonly response: Writable;
  /** Rejects with an AccessTokenFault once the credentials have ended. */
  readonly verifyAgain: () => Promise<void>;
  readonly begin: { readonly position: number; readonly cursor: string };
  readonly portions: AsyncIterable<Matches>;
  readonly reading: AbortController;
  /** The first portion, or why there is none. */
  readonly first: Matches | RestoredCursor;
  /** Takes memory for a portion longer than `maxPortionBytes`; undefined: none is free. */
  readonly takeMemory: (bytes: number) => Release | undefined;
}

/** A feed as server-sent events. */
export class EventStream {
  readonly body: Readable;
  readonly #options: EventStreamOptions;
  readonly #endsAt: number;
  #cursor: string;
  #position: number;
  #passed = 0;
  #sentAt = performance.now();
  #drained: (() => void) | undefined;
  #releaseMemory: Release | undefined;
  #hasEnded = false;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#endsAt = this.#sentAt + streamTime.mean + streamTime.spread * (2 * Math.random() - 1);
    this.#cursor = options.begin.cursor;
    this.#position = options.begin.position;
    const drained = () => this.#drained?.();
    options.response.on('drain', drained);
    options.response.once('close', () => this.#releaseMemory?.());
    const ended = () => this.end();
    this.body = new Readable({
      read: drained,
      destroy(error, callback) {
        ended();
        callback(error);
      },
    });
    this.body.push(`retry: ${retry}\n\n`);
    this.#sendPosition();
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  async run(): Promise<void> {
    const { first, portions } = this.#options;
    try {
      if (first instanceof RestoredCursor) throw first;
      await this.#sendPortion(first, true);
      let isFirst = !first.caughtUp;
      for await (const portion of portions) {
        await this.#sendPortion(portion, isFirst);
        if (portion.caughtUp) isFirst = false;
      }
    } catch (error) {
      if (!(error instanceof RestoredCursor)) throw error;
      this.#send(event('reset', error.oldest, { reason: 'restored', oldest: error.oldest }));
    } finally {
      this.end();
    }
  }

  /** Ends the stream: the client resumes with its last id. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#drained?.();
    this.body.push(null);
    this.#options.reading.abort();
  }

  /** To be called regularly. */
  check(now: number): void {
    if (now >= this.#endsAt) {
      this.end();
      return;
    }
    if (this.#unsent() === 0) this.#releaseMemory?.();
    if (now - this.#sentAt >= silence) this.#sendPosition();
    this.#options.verifyAgain().catch((error: unknown) => {
      // While the database is away, the credentials cannot be checked.
      if (error instanceof AccessTokenFault) this.end();
    });
  }

  async #sendPortion(portion: Matches, isBeforeEnd: boolean): Promise<void> {
    const { items, reached, cursor, caughtUp, expired } = portion;
    if (this.#hasEnded) return;
    const events = changeEvents(items);
    if (!isBeforeEnd && events.length > 0 && this.#unsent() > maxUnsent) {
      this.#options.response.destroy();
      return;
    }
    if (isBeforeEnd && events.length > 2 * maxPortionBytes && !this.#holdMemory(events.length)) {
      this.end();
      return;
    }
    if (events.length > 0) this.#send(events);
    this.#passed = items.length > 0 ? 0 : this.#passed + reached.position - this.#position;
    this.#cursor = cursor;
    this.#position = reached.position;
    if (expired > 0 || this.#passed >= positionsOfSilence) this.#sendPosition(expired);
    if (isBeforeEnd && caughtUp) this.#send(event('caught-up', cursor, { position: reached.position }));
    while (isBeforeEnd && !caughtUp && !this.#hasEnded && this.#unsent() > maxPortionBytes) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#drained = resolve;
      await promise;
    }
  }

  /** Holds memory until the client has taken what is unsent. Returns whether there was enough. */
  #holdMemory(bytes: number): boolean {
    this.#releaseMemory?.();
    this.#releaseMemory = this.#options.takeMemory(bytes);
    return this.#releaseMemory !== undefined;
  }

  /** Bytes in this process. Those in the operating system count as sent. */
  #unsent(): number {
    return this.body.readableLength + this.#options.response.writableLength;
  }

  #sendPosition(expired = 0): void {
    this.#passed = 0;
    this.#send(event('position', this.#cursor, { position: this.#position, ...(expired > 0 && { expired }) }));
  }

  #send(text: string | Buffer): void {
    if (this.#hasEnded) return;
    this.#sentAt = performance.now();
    this.body.push(text);
  }
}

/** The streams of a process, with one timer. They end when the service stops. */
export class OpenStreams {
  readonly #streams = new Set<EventStream>();
  #checking: NodeJS.Timeout | undefined;

  async run(stream: EventStream): Promise<void> {
    this.#streams.add(stream);
    this.#checking ??= setInterval(() => this.#check(), checkEvery).unref();
    try {
      await stream.run();
    } finally {
      this.#streams.delete(stream);
      if (this.#streams.size === 0) this.close();
    }
  }

  close(): void {
    clearInterval(this.#checking);
    this.#checking = undefined;
    for (const stream of this.#streams) stream.end();
  }

  #check(): void {
    const now = performance.now();
    for (const stream of this.#streams) stream.check(now);
  }
}
