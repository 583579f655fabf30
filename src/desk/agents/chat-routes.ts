import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError, type ErrorType } from '../../core/errors.ts';
import { clientClosedRequest, whenClientGone } from '../../http/client-gone.ts';
import type { Credentials } from '../../http/credentials.ts';
import { answerOfFault } from '../../http/error-answers.ts';
import { errorMessageBody } from '../../http/error-bodies.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json, stream } from '../../http/openapi/answers.ts';
import { mayReadHistory, type Scope } from '../../http/scopes.ts';
import type { QueuedChat } from '../queued-chat.ts';
import type { RunChat } from './chat.ts';
import { Chat, ChatAnswers, ChatEvents, ChatHeaders, ChatJob, exampleOfEvents } from './chat-schemas.ts';
import type { ChatRequest } from './running-chat.ts';
import { AgentsPath } from './schemas.ts';
import type { AgentRoutesOptions } from './service.ts';
import { tellsHistory } from './turn-store.ts';

const tags = ['Chat'];
const errorsOfChats: readonly ErrorType[] = [
  'resource_not_found',
  'conflict_resource',
  'quota_exceeded',
  'provider_error',
  'provider_timeout',
];
const scopes: readonly Scope[] = ['ai.agentexecution_manage'];

interface ChattingRequest {
  id: string;
  headers: { 'session-id'?: string };
  body: { agentId: string; message: string };
  credentials: Credentials;
}

/** Chatting with agents (contract 8). */
export async function chatRoutes(app: HttpServer, { agents }: AgentRoutesOptions): Promise<void> {
  const { chats, jobs } = agents;

  app.post(
    '/ai-service/:tenant/agentic/chat',
    {
      config: { scopes, work: 'calls', errors: errorsOfChats },
      schema: {
        operationId: 'chat',
        tags,
        summary: 'Chatting with an agent',
        params: AgentsPath,
        headers: ChatHeaders,
        body: Chat,
        response: { 200: json(ChatAnswers, { description: 'The answer.', headers: ['Session-Id'] }) },
      },
    },
    async (request, reply) => {
      const chat = chatOf(request);
      reply.header('session-id', chat.sessionId);
      const signal = whenClientGone(reply);
      try {
        const { answer } = await chats.run({ ...chat, signal });
        return [answer];
      } catch (error) {
        if (!signal.aborted) throw error;
        return await reply.code(clientClosedRequest as 200).send([]);
      }
    },
  );

  app.post(
    '/ai-service/:tenant/agentic/chat-stream',
    {
      config: { scopes, work: 'calls', errors: ['resource_not_found', 'conflict_resource'] },
      schema: {
        operationId: 'chatStream',
        tags,
        summary: 'Chatting with an agent; the answer is a stream of server-sent events',
        params: AgentsPath,
        headers: ChatHeaders,
        body: Chat,
        response: {
          200: stream(
            { 'text/event-stream': { schema: ChatEvents, example: exampleOfEvents } },
            { description: 'The events of the chat.', headers: ['Session-Id'] },
          ),
        },
      },
    },
    async (request, reply) => {
      const chat = chatOf(request);
      const events = await streamChat(chats.run, { ...chat, signal: whenClientGone(reply) }, request.log);
      return await reply
        .headers({ 'session-id': chat.sessionId, 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
        .type('text/event-stream')
        .send(events);
    },
  );

  app.post(
    '/ai-service/:tenant/agentic/chat-async',
    {
      config: { scopes, errors: ['resource_not_found', 'conflict_resource'] },
      schema: {
        operationId: 'chatAsync',
        tags,
        summary: 'Chatting with an agent in a job',
        params: AgentsPath,
        headers: ChatHeaders,
        body: Chat,
        response: {
          201: json(ChatJob, { description: 'The job was created.', headers: ['Location', 'Session-Id'] }),
        },
      },
    },
    async (request, reply) => {
      const chat = chatOf(request);
      const { tenant, sessionId } = chat;
      const jobId = await chats.accept(chat, async (transaction, accepted) => {
        // A message may quote change history that its session showed the client. Reading jobs needs other scopes.
        const guardsMessage =
          mayReadHistory(chat.credentials.scopes) && (await tellsHistory(transaction, tenant, sessionId));
        return await jobs.enqueueAgentChat(transaction, accepted, { guardsMessage });
      });
      jobs.wakeAgentChats(tenant);
      const location = `/ai-service/${tenant}/jobs/${jobId}`;
      return await reply.code(201).headers({ location, 'session-id': chat.sessionId }).send({ jobId });
    },
  );
}

function chatOf({ id, headers, body: { agentId, message }, credentials }: ChattingRequest): QueuedChat {
  const { tenant, clientId, clientName, scopes: granted } = credentials;
  return {
    tenant,
    agentId,
    message,
    sessionId: headers['session-id']?.toLowerCase() ?? randomUUID(),
    requestId: id,
    logId: randomUUIDv7(),
    credentials: { clientId, clientName, scopes: granted },
  };
}

/** Milliseconds. Proxies between the service and the client close connections that are silent for too long. */
const heartbeat = 15_000;

/**
 * Sends a chat as server-sent events: `token` with `{text}` for each part of the answer, then `done` with the whole
 * answer, or `error` with an error message (contract 8). Resolves when the chat has its place in its session, and rejects
 * where it gets none.
 */
async function streamChat(run: RunChat, request: ChatRequest, logger: FastifyBaseLogger): Promise<PassThrough> {
  const accepted = Promise.withResolvers<void>();
  let isAccepted = false;
  const events = new PassThrough();
  const send = (event: string, data: object) => events.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const beat = setInterval(() => events.write(': still at it\n\n'), heartbeat);

  async function onText(text: string): Promise<void> {
    // A slow client slows the provider down, so the text does not collect in memory.
    if (!send('token', { text }) && !events.destroyed) {
      await once(events, 'drain', request.signal === undefined ? {} : { signal: request.signal });
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
      events.end();
    });
  await accepted.promise;
  return events;
}

/** The seconds after which the client may try again. An ordinary response has them in its Retry-After header. */
function retryAfterOf({ headers }: AnnalsError): { retryAfter?: number } {
  const value = headers['Retry-After'];
  if (value === undefined) return {};
  const seconds = /^\d+$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - Date.now()) / 1_000);
  return Number.isFinite(seconds) ? { retryAfter: Math.max(0, seconds) } : {};
}
