import { type PassThrough, Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { AnnalsError } from '../../core/errors.ts';
import { clientClosedRequest, whenClientGone } from '../../http/client-gone.ts';
import { AccessTokenFault } from '../../http/credentials.ts';
import type { VendorHeaders } from '../../providers/port.ts';
import type { Idempotency } from '../completions/idempotency.ts';
import { type StreamedWork, streamHeaders, streamText } from '../streamed-answer.ts';
import { type IdempotentAnswer, idempotentAnswer } from './idempotent-answer.ts';
import type { PreparedPassing } from './passing.ts';

/** Names the parts that a call was made without, separated by commas. */
export const leftOutHeader = 'annals-left-out';

/** Two credentials could be of two callers. */
export const refuseTwoCredentials: onRequestHookHandler = ({ raw }, _reply, done) => {
  const names = raw.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  const credentials = names.filter((name) => credentialHeaders.has(name));
  done(credentials.length > 1 ? new AccessTokenFault('invalid') : undefined);
};

const credentialHeaders = new Set(['authorization', 'x-api-key', 'api-key', 'x-goog-api-key']);

/** The target of an answer. */
export interface AnswerTo {
  readonly answer: IdempotentAnswer;
  readonly gone: AbortSignal;
  readonly raw: FastifyReply['raw'];
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export type MakeAnswer = (to: AnswerTo) => Promise<PassThrough | string>;

/**
 * Responds with the result of `make`: a JSON text, or a stream of events. Writes nothing if the client has gone.
 * `keySpace`: an Idempotency-Key is that of one call for each of them.
 */
export async function answerCall(
  { request, reply }: Pick<AnswerTo, 'request' | 'reply'>,
  make: MakeAnswer,
  { idempotency, leftOut, keySpace }: { idempotency: Idempotency; leftOut: readonly string[]; keySpace: string },
): Promise<FastifyReply> {
  const gone = whenClientGone(reply);
  const { credentials, bodyText } = request;
  const sent = request.headers['idempotency-key']?.toString();
  const key = sent === undefined ? undefined : `${keySpace}${sent}`;
  const { tenant, clientId } = credentials;
  try {
    const answer = idempotentAnswer(idempotency, { tenant, clientId, key, bodyText }, gone);
    const made = await make({ answer, gone, raw: reply.raw, request, reply });
    if (leftOut.length > 0) reply.header(leftOutHeader, leftOut.join(', '));
    if (typeof made === 'string') return await reply.type('application/json').send(made);
    return await reply.headers(streamHeaders).type('text/event-stream').send(made);
  } catch (error) {
    if (!gone.aborted) throw error;
    return await reply.code(clientClosedRequest).send(Readable.from([]));
  }
}

export async function whole(
  { answer, request }: AnswerTo,
  work: (signal: AbortSignal | undefined) => Promise<string>,
): Promise<string> {
  const made = answer.whole(() => work(answer.signal));
  request.placeKeptUntil = made;
  return await made;
}

export async function streamOf(
  { answer, gone, raw, request }: AnswerTo,
  failed: (error: AnnalsError) => string,
  work: StreamedWork,
): Promise<PassThrough> {
  const once = answer.streamed(work);
  return await streamText(
    (to) => {
      const answered = once(to);
      request.placeKeptUntil = answered;
      return answered;
    },
    { gone, logger: request.log, failed, cuts: raw },
  );
}

/**
 * Passes an answer on. `failed`: the event that ends a stream that fails. A repeat of a request has no headers of the
 * vendor.
 */
export function passing(
  { passed, answer }: PreparedPassing,
  failed: (error: AnnalsError, request: FastifyRequest) => string,
): MakeAnswer {
  if (!passed.stream) {
    return (to) =>
      whole(to, async (signal) => {
        const { text, headers } = await answer({ signal });
        to.reply.headers(headers);
        return text;
      });
  }
  return (to) =>
    streamOf(
      to,
      (error) => failed(error, to.request),
      async ({ write, begin }) => {
        const onAnswering = (headers: VendorHeaders) => {
          if (!to.reply.sent) to.reply.headers(headers);
          begin();
        };
        await answer({ signal: to.answer.signal, onAnswering, onText: write });
        return '';
      },
    );
}
