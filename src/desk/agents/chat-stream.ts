import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import { answerOfFault } from '../../http/error-answers.ts';
import { errorMessageBody } from '../../http/error-bodies.ts';
import type { RunChat } from './chat.ts';
import type { ChatRequest } from './running-chat.ts';

/** Milliseconds. Proxies between the service and the client close connections that are silent for too long. */
const heartbeat = 15_000;

/**
 * Sends a chat as server-sent events: `token` with `{text}` for each part of the answer, then `done` with the whole
 * answer, or `error` with an error message (contract 8). Resolves when the chat has its place in its session, and rejects
 * where it gets none.
 */
export async function streamChat(run: RunChat, request: ChatRequest, logger: FastifyBaseLogger): Promise<PassThrough> {
  const accepted = Promise.withResolvers<void>();
  let isAccepted = false;
  const stream = new PassThrough();
  const send = (event: string, data: object) => stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const beat = setInterval(() => stream.write(': still at it\n\n'), heartbeat);

  async function onText(text: string): Promise<void> {
    // A slow client slows the provider down, so the text does not collect in memory.
    if (!send('token', { text }) && !stream.destroyed) {
      await once(stream, 'drain', request.signal === undefined ? {} : { signal: request.signal });
    }
  }

  function onAccepted(): void {
    isAccepted = true;
    accepted.resolve();
  }

  run({ ...request, onText, onAccepted })
    .then(({ answer }) => send('done', answer))
    .catch((error: unknown) => {
      if (!isAccepted) accepted.reject(error);
      if (!isAccepted || request.signal?.aborted === true) return;
      if (!(error instanceof AnnalsError) || error.status >= 500)
        logger.error({ err: error }, 'a streamed chat failed');
      const told = error instanceof AnnalsError ? error : answerOfFault(error);
      send('error', { ...errorMessageBody(told), ...retryAfterOf(told) });
    })
    .finally(() => {
      clearInterval(beat);
      stream.end();
    });
  await accepted.promise;
  return stream;
}

/** The seconds after which the client may try again. An ordinary response has them in its Retry-After header. */
function retryAfterOf({ headers }: AnnalsError): { retryAfter?: number } {
  const value = headers['Retry-After'];
  if (value === undefined) return {};
  const seconds = /^\d+$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - Date.now()) / 1_000);
  return Number.isFinite(seconds) ? { retryAfter: Math.max(0, seconds) } : {};
}
