import { AnnalsError } from '../../core/errors.ts';
import { clearOnErasure } from '../../core/forgetting.ts';
import { rest } from '../../core/repeat.ts';
import { Stop } from '../../core/stop-signal.ts';
import type { Position } from '../../recording/positions.ts';
import type { Follow } from './follower.ts';
import type { FeedItem, FeedReads, Matches } from './read-matches.ts';

/** Observes reads, which are retried automatically. */
export interface FeedObserver {
  onFailure(failure: unknown): void;
  onSuccess(): void;
}

export interface ChannelReader {
  take(matches: Matches): void;
  fail(error: unknown): void;
  readonly observer?: FeedObserver | undefined;
}

interface ChannelOptions {
  readonly tenant: string;
  readonly q: string;
  readonly withContext: boolean;
  readonly reads: FeedReads;
  readonly follow: Follow;
  onError(error: unknown): void;
}

const maxItems = 1_000;
const maxBytes = 256 * 1024;
/** Bytes of the last items that a channel keeps, for readers who are a little behind. */
const maxKeptBytes = 64 * 1024;
/** Milliseconds between reads without news, in case the database was restored. */
const lookEvery = 15_000;
const pauseAfterFailure = 1_000;

/**
 * Reads new positions of a tenant for all readers of one query, so that each change is read and serialized once. A
 * reader that is behind joins when it has caught up by itself.
 */
export class Channel {
  readonly #options: ChannelOptions;
  readonly #readers = new Map<ChannelReader, number>();
  /** The last items, oldest first: everything that matches behind `#keptFrom`. */
  #kept: FeedItem[] = [];
  #keptBytes = 0;
  #keptFrom: number;
  #reached: Matches;
  readonly #stop = new Stop();
  readonly #unfollow: () => void;
  readonly #looking: NodeJS.Timeout;
  #reading: Promise<void> | undefined;
  #hasNews = false;

  /** `begin`: where the first reader has caught up. */
  constructor(options: ChannelOptions, begin: Matches) {
    this.#options = options;
    this.#reached = { ...begin, items: [], expired: 0 };
    this.#keptFrom = begin.reached.position;
    const onNews = () => this.#onNews();
    this.#unfollow = options.follow(options.tenant, onNews, (error) => this.#reportFailure(error));
    clearOnErasure(this);
    this.#looking = setInterval(onNews, lookEvery).unref();
  }

  /** Whether its last reader has left, or it failed. */
  get hasEnded(): boolean {
    return this.#stop.aborted;
  }

  /** Drops the items that it keeps. Readers behind the last read can then not join. */
  clear(): void {
    this.#kept = [];
    this.#keptBytes = 0;
    this.#keptFrom = this.#reached.reached.position;
  }

  /** Adds a reader at a position; false if the channel is too far ahead of it. */
  join(reader: ChannelReader, { position }: Position): boolean {
    if (position < this.#keptFrom || this.#stop.aborted) return false;
    this.#readers.set(reader, position);
    if (position < this.#reached.reached.position) this.#send(reader, { ...this.#reached, items: [...this.#kept] });
    return true;
  }

  /** Removes a reader. Returns whether it was the last one: the channel has then ended. */
  leave(reader: ChannelReader): boolean {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return false;
    this.#end();
    return true;
  }

  #onNews(): void {
    this.#hasNews = true;
    this.#reading ??= this.#readNews().finally(() => {
      this.#reading = undefined;
    });
  }

  async #readNews(): Promise<void> {
    const { tenant, q, withContext, reads, onError } = this.#options;
    while (this.#hasNews && !this.#stop.aborted) {
      this.#hasNews = false;
      const after = this.#reached.reached;
      try {
        const options = { q, withContext, after, maxItems, maxBytes, signal: this.#stop };
        const matches = await reads.readMatches(tenant, options);
        for (const { observer } of this.#readers.keys()) observer?.onSuccess();
        if (!matches.caughtUp) this.#hasNews = true;
        this.#take(matches);
      } catch (error) {
        if (this.#stop.aborted) return;
        if (error instanceof AnnalsError && error.status < 500) {
          for (const reader of this.#readers.keys()) reader.fail(error);
          this.#end();
          return;
        }
        onError(error);
        this.#reportFailure(error);
        this.#hasNews = true;
        await rest(pauseAfterFailure, new AbortController().signal);
      }
    }
  }

  #reportFailure(failure: unknown): void {
    for (const { observer } of this.#readers.keys()) observer?.onFailure(failure);
  }

  #take(matches: Matches): void {
    if (matches.reached.position === this.#reached.reached.position) return;
    this.#reached = matches;
    this.#kept.push(...matches.items);
    for (const { text } of matches.items) this.#keptBytes += text.length;
    while (this.#keptBytes > maxKeptBytes) {
      const dropped = this.#kept.shift();
      if (dropped === undefined) break;
      this.#keptBytes -= dropped.text.length;
      this.#keptFrom = dropped.position;
    }
    for (const reader of this.#readers.keys()) this.#send(reader, matches);
  }

  #send(reader: ChannelReader, matches: Matches): void {
    const position = this.#readers.get(reader) ?? 0;
    if (matches.reached.position <= position) return;
    this.#readers.set(reader, matches.reached.position);
    const first = matches.items.findIndex((item) => item.position > position);
    reader.take(first === 0 ? matches : { ...matches, items: first === -1 ? [] : matches.items.slice(first) });
  }

  #end(): void {
    this.#stop.abort(new Error('the last reader of the channel has left'));
    this.#unfollow();
    clearInterval(this.#looking);
  }
}
