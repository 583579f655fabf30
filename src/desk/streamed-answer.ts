import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { answerOfFault } from '../http/error-answers.ts';
import { errorMessageBody } from '../http/error-bodies.ts';
import type { OnText } from '../providers/port.ts';

/** Milliseconds. Proxies between the service and the client close connections that are silent for too long. */
const heartbeat = 15_000;
/** Milliseconds between two looks whether the client has the last event. */
const cutPause = 20;

export interface StreamOptions {
  /** For a client that has gone nothing is written, and the work does not wait. */
  readonly gone: AbortSignal;
  readonly logger: FastifyBaseLogger;
}

/** What makes an answer that is sent in parts. */
export type StreamedWork = (stream: {
  /** Resolves when the next part may come: a slow client slows the provider down, so the text does not collect in memory. */
  readonly write: (text: string) => Promise<void>;
  /** To be called when the headers may go out. */
  readonly begin: () => void;
}) => Promise<string>;

/**
 * Streams an answer: what the work writes, and what it resolves to as the last part. Resolves when the work begins to answer, and
 * rejects where it fails before that. A later failure is the text of `failed`; with `cuts` the connection is cut after it, so
 * that what came does not look whole.
 */
export async function streamText(
  work: StreamedWork,
  { failed, cuts, gone, logger }: StreamOptions & { failed: (told: AnnalsError) => string; cuts?: ServerResponse },
): Promise<PassThrough> {
  const begun = Promise.withResolvers<void>();
  let hasBegun = false;
  const events = new PassThrough();
  const beat = setInterval(() => events.write(': still at it\n\n'), heartbeat);

  async function write(text: string): Promise<void> {
    if (gone.aborted || events.destroyed || events.write(text)) return;
    await once(events, 'drain', { signal: gone }).catch(() => {});
  }

  function begin(): void {
    hasBegun = true;
    begun.resolve();
  }

  async function run(): Promise<void> {
    try {
      const last = await work({ write, begin });
      begin();
      events.end(last);
    } catch (error) {
      if (!hasBegun) begun.reject(error);
      if (hasBegun && !gone.aborted) await fail(error);
      else events.end();
    } finally {
      clearInterval(beat);
    }
  }

  async function fail(error: unknown): Promise<void> {
    const told = error instanceof AnnalsError ? error : answerOfFault(error);
    if (told.status >= 500) logger.error({ err: error }, 'a streamed answer failed');
    if (cuts === undefined) {
      events.end(failed(told));
      return;
    }
    events.write(failed(told));
    while (!gone.aborted && (events.readableLength > 0 || cuts.writableLength > 0)) await sleep(cutPause);
    cuts.destroy();
  }

  void run();
  await begun.promise;
  return events;
}

/**
 * The same as named events: `token` with `{text}` for each part, then `done` with what the work resolves to, or `error` with an
 * error message (contract 8).
 */
export async function streamAnswer(
  work: (stream: { readonly onText: OnText; readonly begin: () => void }) => Promise<object>,
  options: StreamOptions,
): Promise<PassThrough> {
  const eventText = (event: string, data: object) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  return await streamText(
    async ({ write, begin }) =>
      eventText('done', await work({ onText: (text) => write(eventText('token', { text })), begin })),
    { ...options, failed: (told) => eventText('error', { ...errorMessageBody(told), ...retryAfterOf(told) }) },
  );
}

export const streamHeaders = { 'cache-control': 'no-store', 'x-accel-buffering': 'no' } as const;

/** The seconds after which the client may try again. An ordinary response has them in its Retry-After header. */
function retryAfterOf({ headers }: AnnalsError): { retryAfter?: number } {
  const value = headers['Retry-After'];
  if (value === undefined) return {};
  const seconds = /^\d+$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - Date.now()) / 1_000);
  return Number.isFinite(seconds) ? { retryAfter: Math.max(0, seconds) } : {};
}
