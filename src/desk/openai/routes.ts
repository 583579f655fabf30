import { type PassThrough, Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import { noSuchOperation } from '../../http/allowed-methods.ts';
import { clientClosedRequest, whenClientGone } from '../../http/client-gone.ts';
import { AccessTokenFault } from '../../http/credentials.ts';
import { answerErrorsAs } from '../../http/error-answers.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import type { Scope } from '../../http/scopes.ts';
import type { PassedOperation, VendorHeaders } from '../../providers/port.ts';
import type { Idempotency } from '../completions/idempotency.ts';
import { CompletionHeaders } from '../completions/schemas.ts';
import { userOfHeader } from '../end-user.ts';
import { prefetchKeys } from '../prefetch-keys.ts';
import { type StreamedWork, streamHeaders, streamText } from '../streamed-answer.ts';
import { completionBody, completionChunks, event } from './answer-body.ts';
import { documentPath, leftOutHeader, openaiDocument } from './document.ts';
import { invalidKey, openaiError } from './error-body.ts';
import { type IdempotentAnswer, idempotentAnswer } from './idempotent-answer.ts';
import { openaiLimits } from './limits.ts';
import type { Openai, PreparedCall, PreparedPassing } from './service.ts';

const scopes: readonly Scope[] = ['ai.completion_manage'];
const schema = { hide: true } as const;

/** The endpoint for clients of the first provider's format (ai-gateway). Every response has it, errors too. */
export async function openaiRoutes(
  app: HttpServer,
  { openai, idempotency, ...described }: { openai: Openai; idempotency: Idempotency; version: string; address: string },
): Promise<void> {
  answerErrorsAs(app, { fault: ({ message }) => invalidKey(message), message: openaiError });

  app.addHook('onRequest', refuseTwoCredentials);

  const document = openaiDocument(described);
  app.get(documentPath, { schema }, (_request, reply) => reply.type('application/json; charset=utf-8').send(document));

  const ofCalls = {
    bodyLimit: openaiLimits.bodyBytes,
    config: { scopes, work: 'calls', takesKeys: true, refusesByteOrderMark: true },
    preParsing: prefetchKeys((tenant) => openai.keysOf(tenant)),
    schema: { ...schema, headers: CompletionHeaders },
  } as const;

  /** Responds with the result of `make`. Writes nothing if the client has gone. */
  async function answerCall(
    request: FastifyRequest,
    reply: FastifyReply,
    make: MakeAnswer,
    leftOut: readonly string[],
  ): Promise<FastifyReply> {
    const gone = whenClientGone(reply);
    const { credentials, bodyText } = request;
    const key = request.headers['idempotency-key']?.toString();
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

  for (const operation of ['chat/completions', 'responses'] as const) {
    app.post(`/openai/:tenant/v1/${operation}`, ofCalls, async (request, reply) => {
      const prepared = await openai.prepare(callerOf(request), operation, request);
      const make = 'passed' in prepared ? passing(prepared, operation) : translated(prepared);
      return await answerCall(request, reply, make, prepared.leftOut);
    });
  }

  app.get('/openai/:tenant/v1/models', { config: { scopes, takesKeys: true }, schema }, async ({ credentials }) => ({
    object: 'list',
    data: await openai.models(credentials),
  }));

  // Model names contain slashes.
  app.get('/openai/:tenant/v1/models/*', { config: { scopes, takesKeys: true }, schema }, async (request) => {
    const { '*': name } = request.params as { '*': string };
    return await openai.model(request.credentials, name);
  });

  app.route({
    method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    url: '/openai/:tenant/*',
    config: { scopes, takesKeys: true, refuses: true },
    schema,
    handler: (request) => {
      const error = noSuchOperation(request);
      if (error.status !== 404) throw error;
      throw new AnnalsError(
        error.type,
        'There is nothing at this path: chat/completions, responses and models are there.',
      );
    },
  });
}

function callerOf(request: FastifyRequest) {
  return { ...request.credentials, header: userOfHeader(request) };
}

/** Two credentials could be of two callers. */
const refuseTwoCredentials: onRequestHookHandler = ({ raw }, _reply, done) => {
  const names = raw.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  const credentials = names.filter((name) => credentialHeaders.has(name));
  done(credentials.length > 1 ? new AccessTokenFault('invalid') : undefined);
};

const credentialHeaders = new Set(['authorization', 'x-api-key', 'api-key', 'x-goog-api-key']);

/** The target of an answer. */
interface AnswerTo {
  readonly answer: IdempotentAnswer;
  readonly gone: AbortSignal;
  readonly raw: FastifyReply['raw'];
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

type MakeAnswer = (to: AnswerTo) => Promise<PassThrough | string>;

async function whole(
  { answer, request }: AnswerTo,
  work: (signal: AbortSignal | undefined) => Promise<string>,
): Promise<string> {
  const made = answer.whole(() => work(answer.signal));
  request.placeKeptUntil = made;
  return await made;
}

async function streamOf(
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

function translated(prepared: PreparedCall): MakeAnswer {
  const { head, idOf, answer } = prepared;
  return (to) =>
    prepared.request.stream
      ? stream(prepared, to)
      : whole(to, async (signal) => JSON.stringify(completionBody(head, await answer({ signal }), idOf)));
}

/** A repeat of a request has no headers of the vendor. */
function passing({ passed, answer }: PreparedPassing, operation: PassedOperation): MakeAnswer {
  if (!passed.stream) {
    return (to) =>
      whole(to, async (signal) => {
        const { text, headers } = await answer({ signal });
        to.reply.headers(headers);
        return text;
      });
  }
  const failed = operation === 'responses' ? eventOfFailure : (error: AnnalsError) => event(openaiError(error));
  return (to) =>
    streamOf(to, failed, async ({ write, begin }) => {
      const onAnswering = (headers: VendorHeaders) => {
        if (!to.reply.sent) to.reply.headers(headers);
        begin();
      };
      await answer({ signal: to.answer.signal, onAnswering, onText: write });
      return '';
    });
}

function eventOfFailure(error: AnnalsError): string {
  const { code, message, param } = openaiError(error).error;
  return `event: error\n${event({ type: 'error', code, message, param, sequence_number: 0 })}`;
}

function stream({ request: { includesUsage }, head, idOf, answer }: PreparedCall, to: AnswerTo): Promise<PassThrough> {
  const chunks = completionChunks(head, includesUsage, idOf);
  return streamOf(
    to,
    (error) => event(openaiError(error)),
    async ({ write, begin }) => {
      let hasBegun = false;
      const answered = await answer({
        signal: to.answer.signal,
        drains: true,
        onAnswering() {
          hasBegun = true;
          begin();
          void write(chunks.begin());
        },
        onText: (text) => write(chunks.text(text)),
        onToolCall: (piece) => write(chunks.toolCall(piece)),
      });
      return `${hasBegun ? '' : chunks.begin()}${chunks.end(answered)}`;
    },
  );
}
