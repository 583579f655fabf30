import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { answerOfFault } from '../http/error-answers.ts';
import { errorMessageBody } from '../http/error-bodies.ts';
import type { OnText } from '../providers/port.ts';

/** Milliseconds. Proxies between the service and the client close connections that are silent for too long. */
const heartbeat = 15_000;

/** What makes an answer that is sent in parts. It calls `begin` when the headers may go out. Resolves to the content of `done`. */
export type StreamedWork = (stream: { readonly onText: OnText; readonly begin: () => void }) => Promise<object>;

/**
 * Sends an answer as server-sent events: `token` with `{text}` for each part, then `done` with what the work resolves to, or `error`
 * with an error message (contract 8). Resolves when the work begins to answer, and rejects where it fails before that. For a client
 * that has `gone` nothing is written, and the work does not wait.
 */
export async function streamAnswer(
  work: StreamedWork,
  { gone, logger }: { gone: AbortSignal; logger: FastifyBaseLogger },
): Promise<PassThrough> {
  const begun = Promise.withResolvers<void>();
  let hasBegun = false;
  const events = new PassThrough();
  const send = (event: string, data: object) => events.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const beat = setInterval(() => events.write(': still at it\n\n'), heartbeat);

  async function onText(text: string): Promise<void> {
    // A slow client slows the provider down, so the text does not collect in memory.
    if (gone.aborted || events.destroyed || send('token', { text })) return;
    await once(events, 'drain', { signal: gone }).catch(() => {});
  }

  function begin(): void {
    hasBegun = true;
    begun.resolve();
  }

  work({ onText, begin })
    .then((answer) => {
      begin();
      send('done', answer);
    })
    .catch((error: unknown) => {
      if (!hasBegun) begun.reject(error);
      if (!hasBegun || gone.aborted) return;
      if (!(error instanceof AnnalsError) || error.status >= 500)
        logger.error({ err: error }, 'a streamed answer failed');
      const told = error instanceof AnnalsError ? error : answerOfFault(error);
      send('error', { ...errorMessageBody(told), ...retryAfterOf(told) });
    })
    .finally(() => {
      clearInterval(beat);
      events.end();
    });
  await begun.promise;
  return events;
}

export const streamHeaders = { 'cache-control': 'no-store', 'x-accel-buffering': 'no' } as const;

/** The seconds after which the client may try again. An ordinary response has them in its Retry-After header. */
function retryAfterOf({ headers }: AnnalsError): { retryAfter?: number } {
  const value = headers['Retry-After'];
  if (value === undefined) return {};
  const seconds = /^\d+$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - Date.now()) / 1_000);
  return Number.isFinite(seconds) ? { retryAfter: Math.max(0, seconds) } : {};
}
