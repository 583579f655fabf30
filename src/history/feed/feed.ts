import { AnnalsError } from '../../core/errors.ts';
import { rest } from '../../core/repeat.ts';
import { Channel, type ChannelReader, type FeedObserver } from './channel.ts';
import type { Follow } from './follower.ts';
import type { Position } from './positions.ts';
import type { FeedReads, Matches, MatchOptions } from './read-matches.ts';

export interface FollowOptions {
  readonly q: string;
  readonly withContext: boolean;
  readonly after: Position;
  /** Of one read behind the end of the positions. */
  readonly maxItems: number;
  readonly maxBytes: number;
  /** Ends the reading. */
  readonly signal: AbortSignal;
  readonly observer?: FeedObserver | undefined;
}

/** What goes out of the history, as it happens. */
export interface Feed extends FeedReads {
  readonly follow: Follow;
  /**
   * Reads on from a position for as long as the caller wants: first what is there, portion by portion, then what comes. Each
   * portion goes on where the one before ended; `caughtUp` says whether the next one has to be waited for. Rejects as
   * `readMatches` does, but retries while the database is away, and tells the observer.
   */
  portions(tenant: string, asked: FollowOptions): AsyncGenerator<Matches, void>;
}

/** Milliseconds. */
const pauseAfterFailure = 1_000;
/** Milliseconds until a reader looks again who found that there is more and could not read it. */
const pauseBeforeUnread = 1_000;

export function createFeed(
  reads: FeedReads,
  { follow, onError }: { follow: Follow; onError: (error: unknown) => void },
): Feed {
  /** Of each query with readers who have caught up. */
  const channels = new Map<string, Channel>();

  function join(tenant: string, { q, withContext }: FollowOptions, reader: ChannelReader, found: Matches) {
    const key = JSON.stringify([tenant, withContext, q]);
    const leave = (channel: Channel) => {
      if (channel.leave(reader) && channels.get(key) === channel) channels.delete(key);
    };
    const known = channels.get(key);
    if (known?.join(reader, found.reached) === true) return () => leave(known);
    if (known !== undefined && !known.hasEnded) return undefined;
    const made = new Channel({ tenant, q, withContext, reads, follow, onError }, found);
    channels.set(key, made);
    made.join(reader, found.reached);
    return () => leave(made);
  }

  async function* portions(tenant: string, asked: FollowOptions): AsyncGenerator<Matches, void> {
    const { q, withContext, maxItems, maxBytes, signal, observer } = asked;
    let { after } = asked;
    while (!signal.aborted) {
      const found = await readPatiently(tenant, { q, withContext, after, maxItems, maxBytes, signal }, observer);
      if (found === undefined) return;
      const isStuck = !found.caughtUp && found.reached.position === after.position;
      after = found.reached;
      if (found.caughtUp) {
        const queue = new Queue(observer);
        const leave = join(tenant, asked, queue, found);
        try {
          yield found;
          if (leave !== undefined) yield* queue.taken(signal);
        } finally {
          leave?.();
        }
      } else {
        yield found;
      }
      if (isStuck) await rest(pauseBeforeUnread, signal);
    }
  }

  async function readPatiently(
    tenant: string,
    asked: MatchOptions & { signal: AbortSignal },
    observer: FeedObserver | undefined,
  ): Promise<Matches | undefined> {
    const { signal } = asked;
    while (!signal.aborted) {
      try {
        const matches = await reads.readMatches(tenant, asked);
        observer?.onSuccess();
        return matches;
      } catch (error) {
        if (signal.aborted) return undefined;
        if (error instanceof AnnalsError && error.status < 500) throw error;
        onError(error);
        observer?.onFailure(error);
        await rest(pauseAfterFailure, signal);
      }
    }
    return undefined;
  }

  return { ...reads, follow, portions };
}

/** What a channel has sent and the reader has not taken yet. */
class Queue implements ChannelReader {
  readonly observer: FeedObserver | undefined;
  #matches: Matches[] = [];
  #failure: { error: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(observer: FeedObserver | undefined) {
    this.observer = observer;
  }

  take(matches: Matches): void {
    this.#matches.push(matches);
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.#wake?.();
  }

  async *taken(signal: AbortSignal): AsyncGenerator<Matches, void> {
    const onAbort = () => this.#wake?.();
    signal.addEventListener('abort', onAbort);
    try {
      while (!signal.aborted) {
        const matches = this.#matches;
        this.#matches = [];
        yield* matches;
        if (this.#matches.length > 0) continue;
        if (this.#failure !== undefined) throw this.#failure.error;
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wake = resolve;
        if (!signal.aborted) await promise;
        this.#wake = undefined;
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
