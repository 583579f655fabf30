import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { answerOfFault, errorMessageBody } from '../http/error-answers.ts';
import type { OnText } from '../providers/port.ts';

/** Milliseconds. Proxies close connections that are silent for too long. */
const heartbeat = 15_000;
/** Milliseconds between checks whether the client has received the last event. */
const cutPause = 20;

export interface StreamOptions {
  /** Once the client has gone nothing is written, and the work does not wait. */
  readonly gone: AbortSignal;
  readonly logger: FastifyBaseLogger;
}

/** Work that produces an answer in parts. */
export type StreamedWork = (stream: {
  /** Resolves when the next part may be written: a slow client slows the provider down, so no text piles up. */
  readonly write: (text: string) => Promise<void>;
  /** Call it when the headers may be sent. */
  readonly begin: () => void;
}) => Promise<string>;

/**
 * Streams an answer: what the work writes, then what it resolves to. Resolves when the answer begins, and rejects if
 * the work fails before that. A later failure is written as the text of `failed`; with `cuts` the connection is then
 * cut, so that the answer does not look complete.
 */
export async function streamText(
  work: StreamedWork,
  { failed, cuts, gone, logger }: StreamOptions & { failed: (error: AnnalsError) => string; cuts?: ServerResponse },
): Promise<PassThrough> {
  const begun = Promise.withResolvers<void>();
  let hasBegun = false;
  const events = new PassThrough();
  /** Whether what was written ends with a blank line. Within an event nothing else may be written. */
  let isBetweenEvents = true;
  let lastCharacters = '';
  const beat = setInterval(() => {
    if (isBetweenEvents) events.write(': still at it\n\n');
  }, heartbeat);

  async function write(text: string): Promise<void> {
    if (text !== '') {
      lastCharacters = (lastCharacters + text.slice(-longestBlankLine)).slice(-longestBlankLine);
      isBetweenEvents = endsWithBlankLine.test(lastCharacters);
    }
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
    const failure = error instanceof AnnalsError ? error : answerOfFault(error);
    if (failure.status >= 500) logger.error({ err: error }, 'a streamed answer failed');
    if (cuts === undefined) {
      events.end(failed(failure));
      return;
    }
    if (isBetweenEvents) events.write(failed(failure));
    while (!gone.aborted && (events.readableLength > 0 || cuts.writableLength > 0)) await sleep(cutPause);
    cuts.destroy();
  }

  void run();
  await begun.promise;
  return events;
}

/**
 * As `streamText`, with named events: `token` with `{text}` for each part, then `done` with what the work resolves to,
 * or `error` with an error message (contract 8).
 */
export async function streamAnswer(
  work: (stream: { readonly onText: OnText; readonly begin: () => void }) => Promise<object>,
  options: StreamOptions,
): Promise<PassThrough> {
  const eventText = (event: string, data: object) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  return await streamText(
    async ({ write, begin }) =>
      eventText('done', await work({ onText: (text) => write(eventText('token', { text })), begin })),
    { ...options, failed: (error) => eventText('error', { ...errorMessageBody(error), ...retryAfterOf(error) }) },
  );
}

/** A carriage return before a line feed ends no line of its own. */
const endsWithBlankLine = /(?:\r\n|(?<!\r)\n|\r(?!\n)){2}$/;

const longestBlankLine = '\r\n\r\n'.length;

export const streamHeaders = { 'cache-control': 'no-store', 'x-accel-buffering': 'no' } as const;

/** The seconds of Retry-After, as in an ordinary response's header. */
function retryAfterOf({ headers }: AnnalsError): { retryAfter?: number } {
  const value = headers['Retry-After'];
  if (value === undefined) return {};
  const seconds = /^\d+$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - Date.now()) / 1_000);
  return Number.isFinite(seconds) ? { retryAfter: Math.max(0, seconds) } : {};
}
