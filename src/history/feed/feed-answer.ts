import type { Release, Semaphore } from '../../core/fairness/semaphore.ts';
import type { Feed } from './feed.ts';
import { maxPlaces, type Position } from './positions.ts';
import type { Matches } from './read-matches.ts';

export interface FeedRequest {
  readonly q: string;
  readonly withContext: boolean;
  readonly after: Position;
  readonly limit: number;
  /** Seconds to wait for the first item. */
  readonly wait: number;
  /** The client has gone. */
  readonly signal: AbortSignal;
  /** The service stops: it ends the waiting, and what was found is the answer. */
  readonly stopping: AbortSignal;
  /** An answer has a place while it is read, and until it is released. A request that waits has none. */
  readonly answers: Semaphore;
}

/** Approximate bytes of the items of an answer; one item may have more. */
export const maxAnswerBytes = 1024 * 1024;

/** The answer of one request as JSON text. */
export async function readAnswer(
  feed: Feed,
  tenant: string,
  { limit, wait, signal, stopping, answers, ...asked }: FeedRequest,
): Promise<{ text: string; release: Release }> {
  const release = await answers.acquire(tenant, signal);
  let found: Matches;
  try {
    found = await feed.readMatches(tenant, { ...asked, maxItems: limit, maxBytes: maxAnswerBytes });
    if (isAnswer(found, asked.after) || wait === 0) return { text: textOf(found, limit), release };
  } catch (error) {
    release();
    throw error;
  }
  release();
  const waiting = AbortSignal.any([signal, stopping, AbortSignal.timeout(wait * 1_000)]);
  const later = { ...asked, after: found.reached, maxItems: limit, maxBytes: maxAnswerBytes, signal: waiting };
  for await (const portion of feed.portions(tenant, later)) {
    found = { ...portion, expired: found.expired + portion.expired };
    if (isAnswer(found, asked.after)) {
      return { release: await answers.acquire(tenant, signal), text: textOf(found, limit) };
    }
  }
  return { text: textOf(found, limit), release: () => {} };
}

/** Whether a request that may wait is answered with this: it has items, or it has looked at all the positions that it may. */
function isAnswer({ items, reached }: Matches, after: Position): boolean {
  return items.length > 0 || reached.position - after.position >= maxPlaces;
}

/** A channel may have read more items than are wanted. */
function textOf({ items, cursor, caughtUp, expired }: Matches, limit: number): string {
  const wanted = items.slice(0, limit);
  const isWhole = wanted.length === items.length;
  const last = isWhole ? cursor : (wanted.at(-1)?.cursor ?? cursor);
  return (
    `{"items":[${wanted.map(({ text }) => text).join(',')}],"cursor":"${last}",` +
    `"caughtUp":${caughtUp && isWhole},"expired":${expired}}`
  );
}
