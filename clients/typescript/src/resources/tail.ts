import type { Steps } from '../json/steps.ts';
import type { FeedChange } from '../schemas.ts';
import { serverSentEvents } from '../streams/server-sent-events.ts';
import { parseAnswer } from '../transport/answer-json.ts';
import { ApiError } from '../transport/api-error.ts';
import { type CallOptions, path } from '../transport/request.ts';
import { backOff } from '../transport/retry.ts';
import type { Transport } from '../transport/transport.ts';
import { sleep } from '../transport/waiting.ts';

export interface TailParameters {
  /** A filter: text of the query language, or a query of `@annals/client/query`. It has no default window here. */
  readonly q?: string | { toString(): string } | undefined;
  /**
   * The `cursor` of the last change that was dealt with, `start` (the oldest change that is kept) or `now`; left out:
   * `now`.
   */
  readonly after?: string | undefined;
  /** Asks for the context of each entry and how it was recorded; needs `changelog.changelog_manage`. */
  readonly context?: boolean | undefined;
  /** Called with each cursor that the reading has reached, matches or not: what is worth keeping. */
  readonly onCursor?: ((cursor: string) => void) | undefined;
  /** Called when all that was there has been read: at the beginning, and each time the connection was lost. */
  readonly onCaughtUp?: (() => void) | undefined;
  /**
   * Called with the error of each attempt that failed, before the next one. With it, a service that cannot be reached
   * at first is no error of the loop either.
   */
  readonly onLost?: ((error: unknown) => void) | undefined;
  /**
   * Called where the database was restored to an earlier state: the reading goes on from the oldest change that is
   * kept.
   */
  readonly onReset?: ((oldest: string) => void) | undefined;
}

/** What a change of the feed has in addition to its entry. */
export type Placed = Pick<FeedChange, 'position' | 'cursor' | 'ref'>;

/** Milliseconds. The service says something every 15 seconds. */
const maxSilence = 45_000;

/** The changes of a query as they are recorded. It connects again until the caller leaves the loop. */
export async function* tailOf<Entry>(
  { transport, tenant, read }: { transport: Transport; tenant: string; read: (text: string) => Steps<Entry> },
  { q, after, context, onCursor, onCaughtUp, onLost, onReset }: TailParameters,
  options: CallOptions = {},
): AsyncGenerator<Entry & Placed, void, undefined> {
  let cursor: string | undefined;
  let attempt = 0;
  for (;;) {
    try {
      const request = {
        method: 'GET',
        path: path`/changelog/${tenant}/feed`,
        query: { q: q?.toString(), after, context },
        headers: { accept: 'text/event-stream', 'last-event-id': cursor },
        timeout: maxSilence,
      } as const;
      // At first a service that cannot be reached is an error, as of every call, unless the caller wants to be told.
      const { body } = await transport.stream(request, cursor === undefined ? options : { ...options, maxRetries: 0 });
      for await (const { event, data, id } of serverSentEvents(body)) {
        attempt = 0;
        if (event === 'change') yield (await transport.read(read(data), options)) as Entry & Placed;
        if (id === undefined) continue;
        cursor = id;
        if (event === 'reset') onReset?.((parseAnswer(data) as { oldest: string }).oldest);
        else onCursor?.(cursor);
        if (event === 'caught-up') onCaughtUp?.();
      }
    } catch (error) {
      if (!mayGoOn(error) || (cursor === undefined && onLost === undefined)) throw error;
      onLost?.(error);
    }
    attempt += 1;
    // A stream that ends in time is followed by the next one at once.
    if (attempt > 1) await sleep(backOff(attempt - 1, undefined), options.signal);
  }
}

/** Whether another attempt may succeed. */
function mayGoOn(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  const { status } = error;
  return status === undefined ? error.type !== 'invalid_answer' : status === 429 || status >= 500;
}
