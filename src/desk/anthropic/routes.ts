import { Readable } from 'node:stream';
import type { FastifyRequest, onRequestHookHandler, onSendHookHandler } from 'fastify';
import { Type } from 'typebox';
import { AnnalsError } from '../../core/errors.ts';
import { noSuchOperation } from '../../http/allowed-methods.ts';
import { clientClosedRequest, whenClientGone } from '../../http/client-gone.ts';
import { answerErrorsAs } from '../../http/error-answers.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { queryInteger } from '../../http/query-parameters.ts';
import type { Scope } from '../../http/scopes.ts';
import type { Idempotency } from '../completions/idempotency.ts';
import { CompletionHeaders } from '../completions/schemas.ts';
import { userOfHeader } from '../end-user.ts';
import { answerCall, passing, refuseTwoCredentials } from '../formats/answer-calls.ts';
import { prefetchKeys } from '../prefetch-keys.ts';
import { anthropicDocument, documentPath } from './document.ts';
import { anthropicError, errorEvent, invalidKey } from './error-body.ts';
import { anthropicLimits } from './limits.ts';
import type { Anthropic } from './service.ts';

const scopes: readonly Scope[] = ['ai.completion_manage'];
const schema = { hide: true } as const;
const config = { scopes, takesKeys: true, takesApiKeyHeader: true } as const;

const ModelsQuery = Type.Object({
  limit: Type.Optional(queryInteger({ minimum: 1, maximum: anthropicLimits.models, default: 20 })),
  after_id: Type.Optional(Type.String()),
  before_id: Type.Optional(Type.String()),
});

/** The endpoint for clients of the second provider's format (ai-gateway). Every response has it, errors too. */
export async function anthropicRoutes(
  app: HttpServer,
  {
    anthropic,
    idempotency,
    ...described
  }: { anthropic: Anthropic; idempotency: Idempotency; version: string; address: string },
): Promise<void> {
  answerErrorsAs(app, {
    fault: ({ message }, { id }) => invalidKey(message, id),
    message: (error, { id }) => anthropicError(error, id),
  });

  app.addHook('onRequest', refuseTwoCredentials);
  app.addHook('onRequest', keepFromCaches);
  app.addHook('onSend', nameRequest);

  const document = anthropicDocument(described);
  app.get(documentPath, { schema }, (_request, reply) => reply.type('application/json; charset=utf-8').send(document));

  for (const url of ['/anthropic/:tenant', '/anthropic/:tenant/']) {
    app.head(url, { config, schema }, (_request, reply) => reply.code(200).send());
  }

  const ofCalls = {
    bodyLimit: anthropicLimits.bodyBytes,
    config: { ...config, work: 'calls', refusesByteOrderMark: true },
    preParsing: prefetchKeys((tenant) => anthropic.keysOf(tenant)),
    schema: { ...schema, headers: CompletionHeaders },
  } as const;

  app.post('/anthropic/:tenant/v1/messages', ofCalls, async (request, reply) => {
    const caller = { ...request.credentials, header: userOfHeader(request) };
    const prepared = await anthropic.prepare(caller, sentRequest(request));
    const make = passing(prepared, (error, { id }) => errorEvent(error, id));
    return await answerCall({ request, reply }, make, { idempotency, leftOut: [], keySpace: 'anthropic ' });
  });

  app.post('/anthropic/:tenant/v1/messages/count_tokens', ofCalls, async (request, reply) => {
    const gone = whenClientGone(reply);
    try {
      const { text, headers } = await anthropic.countTokens(request.credentials, sentRequest(request), gone);
      return await reply.headers(headers).type('application/json').send(text);
    } catch (error) {
      if (!gone.aborted) throw error;
      return await reply.code(clientClosedRequest).send(Readable.from([]));
    }
  });

  app.get('/anthropic/:tenant/v1/models', { config, schema: { ...schema, querystring: ModelsQuery } }, (request) => {
    const { limit = 20, after_id: afterId, before_id: beforeId } = request.query;
    return anthropic.models(request.credentials, { limit, afterId, beforeId });
  });

  app.get('/anthropic/:tenant/v1/models/*', { config, schema }, async (request) => {
    const { '*': name } = request.params as { '*': string };
    return await anthropic.model(request.credentials, name);
  });

  app.route({
    method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    url: '/anthropic/:tenant/*',
    config: { ...config, refuses: true },
    schema,
    handler: (request) => {
      const error = noSuchOperation(request);
      if (error.status !== 404) throw error;
      throw new AnnalsError(
        error.type,
        'There is nothing at this path: v1/messages, v1/messages/count_tokens and v1/models are there.',
      );
    },
  });
}

function sentRequest({ body, bodyText, headers, raw }: FastifyRequest) {
  const url = raw.url ?? '';
  const begin = url.indexOf('?');
  return { body, bodyText, headers, query: begin === -1 ? '' : url.slice(begin) };
}

/** Without an `Authorization` header caches cannot tell that an answer is private. */
const keepFromCaches: onRequestHookHandler = (_request, reply, done) => {
  reply.header('cache-control', 'no-store');
  done();
};

/** Clients show the id of an answer: the vendor's, or else this service's. */
const nameRequest: onSendHookHandler = (request, reply, payload, done) => {
  if (!reply.hasHeader('request-id')) reply.header('request-id', request.id);
  done(null, payload);
};
