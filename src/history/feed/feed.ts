import { AnnalsError } from '../../core/errors.ts';
import type { Release, Semaphore } from '../../core/fairness/semaphore.ts';
import { rest } from '../../core/repeat.ts';
import { maxPlaces, type Position } from '../../recording/positions.ts';
import { Channel, type ChannelReader, type FeedObserver } from './channel.ts';
import type { Follow } from './follower.ts';
import type { FeedReads, Matches, MatchOptions } from './read-matches.ts';

interface PortionOptions {
  readonly q: string;
  readonly withContext: boolean;
  readonly after: Position;
  /** Limits of one read while the reader has not caught up. */
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  readonly observer?: FeedObserver | undefined;
}

/** The changes of a history, as they happen. */
export interface Feed extends FeedReads {
  readonly follow: Follow;
  /**
   * Reads from a position on until the signal ends it: first the existing positions, portion by portion, then new ones.
   * `caughtUp` says whether the next portion has to be waited for. Rejects as `readMatches` does, but retries while the
   * database is away, and notifies the observer.
   */
  portions(tenant: string, options: PortionOptions): AsyncGenerator<Matches, void>;
}

/** Milliseconds after a read that failed, and after one that could not read what follows. */
const pause = 1_000;

export function createFeed(
  reads: FeedReads,
  { follow, onError }: { follow: Follow; onError: (error: unknown) => void },
): Feed {
  /** One for each query with readers who have caught up. */
  const channels = new Map<string, Channel>();

  /** Returns how the reader leaves; undefined if the channel is too far ahead of it. */
  function join(tenant: string, { q, withContext }: PortionOptions, reader: ChannelReader, found: Matches) {
    const key = JSON.stringify([tenant, withContext, q]);
    const leave = (channel: Channel) => {
      if (channel.leave(reader) && channels.get(key) === channel) channels.delete(key);
    };
    const known = channels.get(key);
    if (known?.join(reader, found.reached) === true) return () => leave(known);
    if (known !== undefined && !known.hasEnded) return undefined;
    const created = new Channel({ tenant, q, withContext, reads, follow, onError }, found);
    channels.set(key, created);
    created.join(reader, found.reached);
    return () => leave(created);
  }

  async function* portions(tenant: string, options: PortionOptions): AsyncGenerator<Matches, void> {
    const { q, withContext, maxItems, maxBytes, signal, observer } = options;
    let { after } = options;
    while (!signal.aborted) {
      const found = await readPatiently(tenant, { q, withContext, after, maxItems, maxBytes, signal }, observer);
      if (found === undefined) return;
      const isStuck = !found.caughtUp && found.reached.position === after.position;
      after = found.reached;
      if (found.caughtUp) {
        const queue = new Queue(observer);
        const leave = join(tenant, options, queue, found);
        try {
          yield found;
          if (leave !== undefined) yield* queue.matches(signal);
        } finally {
          leave?.();
        }
      } else {
        yield found;
      }
      if (isStuck) await rest(pause, signal);
    }
  }

  async function readPatiently(
    tenant: string,
    options: MatchOptions & { signal: AbortSignal },
    observer: FeedObserver | undefined,
  ): Promise<Matches | undefined> {
    const { signal } = options;
    while (!signal.aborted) {
      try {
        const matches = await reads.readMatches(tenant, options);
        observer?.onSuccess();
        return matches;
      } catch (error) {
        if (signal.aborted) return undefined;
        if (error instanceof AnnalsError && error.status < 500) throw error;
        onError(error);
        observer?.onFailure(error);
        await rest(pause, signal);
      }
    }
    return undefined;
  }

  return { ...reads, follow, portions };
}

/** What a channel has sent and the reader has not taken yet. */
class Queue implements ChannelReader {
  readonly observer: FeedObserver | undefined;
  #waiting: Matches[] = [];
  #failure: { error: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(observer: FeedObserver | undefined) {
    this.observer = observer;
  }

  take(matches: Matches): void {
    this.#waiting.push(matches);
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.#wake?.();
  }

  async *matches(signal: AbortSignal): AsyncGenerator<Matches, void> {
    const onAbort = () => this.#wake?.();
    signal.addEventListener('abort', onAbort);
    try {
      while (!signal.aborted) {
        const matches = this.#waiting;
        this.#waiting = [];
        yield* matches;
        if (this.#waiting.length > 0) continue;
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

interface FeedRequest {
  readonly q: string;
  readonly withContext: boolean;
  readonly after: Position;
  readonly limit: number;
  /** Seconds to wait for the first item. */
  readonly wait: number;
  readonly signal: AbortSignal;
  /** The service stops: this ends the wait, and what was found is the answer. */
  readonly stopping: AbortSignal;
  /** An answer has a place while it is read and until it is released. A waiting request has none. */
  readonly answers: Semaphore;
}

/** Approximate bytes of the items of an answer; one item may have more. */
export const maxAnswerBytes = 1024 * 1024;

export async function readAnswer(
  feed: Feed,
  tenant: string,
  { limit, wait, signal, stopping, answers, ...request }: FeedRequest,
): Promise<{ text: string; release: Release }> {
  const release = await answers.acquire(tenant, signal);
  let found: Matches;
  try {
    found = await feed.readMatches(tenant, { ...request, maxItems: limit, maxBytes: maxAnswerBytes });
    if (isAnswer(found, request.after) || wait === 0) return { text: textOf(found, limit), release };
  } catch (error) {
    release();
    throw error;
  }
  release();
  const waiting = AbortSignal.any([signal, stopping, AbortSignal.timeout(wait * 1_000)]);
  const later = { ...request, after: found.reached, maxItems: limit, maxBytes: maxAnswerBytes, signal: waiting };
  for await (const portion of feed.portions(tenant, later)) {
    found = { ...portion, expired: found.expired + portion.expired };
    if (isAnswer(found, request.after)) {
      return { release: await answers.acquire(tenant, signal), text: textOf(found, limit) };
    }
  }
  return { text: textOf(found, limit), release: () => {} };
}

/** Whether this answers a request that may wait: it has items, or has examined the maximum of positions. */
function isAnswer({ items, reached }: Matches, after: Position): boolean {
  return items.length > 0 || reached.position - after.position >= maxPlaces;
}

/** A channel may have read more items than requested. */
function textOf({ items, cursor, caughtUp, expired }: Matches, limit: number): string {
  const shown = items.slice(0, limit);
  const isWhole = shown.length === items.length;
  const last = isWhole ? cursor : (shown.at(-1)?.cursor ?? cursor);
  return (
    `{"items":[${shown.map(({ text }) => text).join(',')}],"cursor":"${last}",` +
    `"caughtUp":${caughtUp && isWhole},"expired":${expired}}`
  );
}
