import type { PassThrough } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import { noSuchOperation } from '../../http/allowed-methods.ts';
import { answerErrorsAs } from '../../http/error-answers.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import type { Scope } from '../../http/scopes.ts';
import type { Idempotency } from '../completions/idempotency.ts';
import { CompletionHeaders } from '../completions/schemas.ts';
import { userOfHeader } from '../end-user.ts';
import {
  type AnswerTo,
  answerCall,
  type MakeAnswer,
  passing,
  refuseTwoCredentials,
  streamOf,
  whole,
} from '../formats/answer-calls.ts';
import { prefetchKeys } from '../prefetch-keys.ts';
import { completionBody, completionChunks, event } from './answer-body.ts';
import { documentPath, openaiDocument } from './document.ts';
import { invalidKey, openaiError } from './error-body.ts';
import { openaiLimits } from './limits.ts';
import type { Openai, PreparedCall } from './service.ts';

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

  for (const operation of ['chat/completions', 'responses'] as const) {
    app.post(`/openai/:tenant/v1/${operation}`, ofCalls, async (request, reply) => {
      const prepared = await openai.prepare(callerOf(request), operation, request);
      const make =
        'passed' in prepared
          ? passing(prepared, operation === 'responses' ? eventOfFailure : eventOfError)
          : translated(prepared);
      return await answerCall({ request, reply }, make, {
        idempotency,
        leftOut: prepared.leftOut,
        keySpace: `openai ${operation} `,
      });
    });
  }

  const ofEmbeddings = { ...ofCalls, config: { ...ofCalls.config, maxValues: openaiLimits.embeddingValues } };
  app.post('/openai/:tenant/v1/embeddings', ofEmbeddings, async (request, reply) => {
    const prepared = await openai.prepareEmbeddings(callerOf(request), request);
    const keySpace = 'openai embeddings ';
    return await answerCall({ request, reply }, passing(prepared, eventOfError), {
      idempotency,
      leftOut: [],
      keySpace,
    });
  });

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
        'There is nothing at this path: chat/completions, responses, embeddings and models are there.',
      );
    },
  });
}

function callerOf(request: FastifyRequest) {
  return { ...request.credentials, header: userOfHeader(request) };
}

function translated(prepared: PreparedCall): MakeAnswer {
  const { head, idOf, answer } = prepared;
  return (to) =>
    prepared.request.stream
      ? stream(prepared, to)
      : whole(to, async (signal) => JSON.stringify(completionBody(head, await answer({ signal }), idOf)));
}

function eventOfError(error: AnnalsError): string {
  return event(openaiError(error));
}

function eventOfFailure(error: AnnalsError): string {
  const { code, message, param } = openaiError(error).error;
  return `event: error\n${event({ type: 'error', code, message, param, sequence_number: 0 })}`;
}

function stream({ request: { includesUsage }, head, idOf, answer }: PreparedCall, to: AnswerTo): Promise<PassThrough> {
  const chunks = completionChunks(head, includesUsage, idOf);
  return streamOf(to, eventOfError, async ({ write, begin }) => {
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
      onReasoning: (text) => write(chunks.reasoning(text)),
      onToolCall: (piece) => write(chunks.toolCall(piece)),
    });
    return `${hasBegun ? '' : chunks.begin()}${chunks.end(answered)}`;
  });
}
