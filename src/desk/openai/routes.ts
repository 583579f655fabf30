import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { clientClosedRequest, whenClientGone } from '../../http/client-gone.ts';
import { answerErrorsAs, nothingAtThisPath } from '../../http/error-answers.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import type { Scope } from '../../http/scopes.ts';
import { keysAhead } from '../keys-ahead.ts';
import { streamHeaders, streamText } from '../streamed-answer.ts';
import { completionBody, completionChunks, event } from './answer-body.ts';
import { documentPath, openaiDocument } from './document.ts';
import { invalidKey, openaiError } from './error-body.ts';
import { openaiLimits } from './limits.ts';
import type { Openai, PreparedCall, PreparedResponse } from './service.ts';

const scopes: readonly Scope[] = ['ai.completion_manage'];
const schema = { hide: true } as const;

/** An endpoint that clients of the first provider's format speak with (ai-gateway). Every answer has that shape, errors too. */
export async function openaiRoutes(
  app: HttpServer,
  { openai, ...described }: { openai: Openai; version: string; address: string },
): Promise<void> {
  answerErrorsAs(app, { fault: ({ message }) => invalidKey(message), message: openaiError });

  const document = openaiDocument(described);
  app.get(documentPath, { schema }, (_request, reply) => reply.type('application/json; charset=utf-8').send(document));

  const ofCalls = {
    bodyLimit: openaiLimits.bodyBytes,
    config: { scopes, work: 'calls', takesKeys: true },
    preParsing: keysAhead((tenant) => openai.keysOf(tenant)),
    schema,
  } as const;

  app.post('/openai/:tenant/v1/chat/completions', ofCalls, async (request, reply) => {
    const gone = whenClientGone(reply);
    const prepared = await openai.prepare(request.credentials, request.body, request.bodyText.length);
    try {
      if (prepared.request.stream) return await stream(prepared, { request, reply, gone });
      const answer = await prepared.answer({ signal: gone });
      return await reply.type('application/json').send(completionBody(prepared.head, answer, prepared.idOf));
    } catch (error) {
      if (!gone.aborted) throw error;
      return await reply.code(clientClosedRequest).send(Readable.from([]));
    }
  });

  app.post('/openai/:tenant/v1/responses', ofCalls, async (request, reply) => {
    const gone = whenClientGone(reply);
    const prepared = await openai.prepareResponse(request.credentials, request.body);
    try {
      if (prepared.request.stream) return await streamResponse(prepared, { request, reply, gone });
      return await reply.type('application/json').send(await prepared.answer({ signal: gone }));
    } catch (error) {
      if (!gone.aborted) throw error;
      return await reply.code(clientClosedRequest).send(Readable.from([]));
    }
  });

  app.get('/openai/:tenant/v1/models', { config: { scopes, takesKeys: true }, schema }, async ({ credentials }) => ({
    object: 'list',
    data: await openai.models(credentials),
  }));

  // The names of models have slashes.
  app.get('/openai/:tenant/v1/models/*', { config: { scopes, takesKeys: true }, schema }, async (request) => {
    const { '*': name } = request.params as { '*': string };
    return await openai.model(request.credentials, name);
  });

  app.route({
    method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    url: '/openai/:tenant/*',
    config: { scopes, takesKeys: true },
    schema,
    handler: () => {
      throw nothingAtThisPath();
    },
  });
}

async function streamResponse(
  { answer }: PreparedResponse,
  { request, reply, gone }: { request: FastifyRequest; reply: FastifyReply; gone: AbortSignal },
): Promise<FastifyReply> {
  const events = await streamText(
    async ({ write, begin }) => {
      const answered = answer({
        signal: gone,
        onAnswering: begin,
        onEvent: (passed) => write(namedEvent(passed)),
      });
      request.placeHeldUntil = answered;
      await answered;
      return '';
    },
    {
      gone,
      logger: request.log,
      failed(told) {
        const { code, message, param } = openaiError(told).error;
        return namedEvent({ type: 'error', code, message, param, sequence_number: 0 });
      },
      cuts: reply.raw,
    },
  );
  return await reply.headers(streamHeaders).type('text/event-stream').send(events);
}

function namedEvent(passed: object): string {
  const type: unknown = Reflect.get(passed, 'type');
  return `${typeof type === 'string' && /^[\w.]+$/.test(type) ? `event: ${type}\n` : ''}${event(passed)}`;
}

async function stream(
  { request: { includesUsage }, head, idOf, answer }: PreparedCall,
  { request, reply, gone }: { request: FastifyRequest; reply: FastifyReply; gone: AbortSignal },
): Promise<FastifyReply> {
  const chunks = completionChunks(head, includesUsage, idOf);
  const events = await streamText(
    ({ write, begin }) => {
      let hasBegun = false;
      const onAnswering = () => {
        hasBegun = true;
        begin();
        void write(chunks.begin());
      };
      const answered = answer({
        signal: gone,
        drains: true,
        onAnswering,
        onText: (text) => write(chunks.text(text)),
        onToolCall: (piece) => write(chunks.toolCall(piece)),
      });
      request.placeHeldUntil = answered;
      return answered.then((whole) => `${hasBegun ? '' : chunks.begin()}${chunks.end(whole)}`);
    },
    { gone, logger: request.log, failed: (told) => event(openaiError(told)), cuts: reply.raw },
  );
  return await reply.headers(streamHeaders).type('text/event-stream').send(events);
}
