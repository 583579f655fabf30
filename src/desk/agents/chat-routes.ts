import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { Type } from 'typebox';
import type { ErrorType } from '../../core/errors.ts';
import { clientClosedRequest, whenClientGone } from '../../http/client-gone.ts';
import { type Credentials, callerOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json, stream } from '../../http/openapi/answers.ts';
import { mayReadHistory, type Scope } from '../../http/scopes.ts';
import type { QueuedChat } from '../queued-chat.ts';
import { streamAnswer, streamHeaders } from '../streamed-answer.ts';
import { AgentsPath } from './schemas.ts';
import type { AgentRoutesOptions } from './service.ts';
import { tellsHistory } from './turn-store.ts';
import { unsupportedOfChats } from './unsupported-members.ts';

const exampleSession = '0b0f5f0e-8a36-4d2e-9c0b-4d8a52b5a1f7';

const Chat = Type.Object(
  {
    agentId: Type.String({ description: 'The id of the agent.' }),
    // A lone surrogate is not valid text.
    message: Type.String({
      minLength: 1,
      pattern: '^[^\\ud800-\\udfff]*$',
      'x-must': 'be a string without lone surrogates',
      description: 'The message to the agent.',
    }),
    ...unsupportedOfChats,
  },
  {
    $id: 'ChatRequest',
    additionalProperties: false,
    examples: [{ agentId: 'price-desk', message: 'Who changed the price of product 17 last week?' }],
  },
);

const ChatHeaders = Type.Object({
  'session-id': Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$',
      'x-must': 'be a UUID',
      description:
        'A UUID. The earlier messages of the session are the context. Without it the service starts a new session.',
    }),
  ),
});

const ChatAnswers = Type.Array(
  Type.Object(
    {
      agentId: Type.String(),
      agentType: Type.Enum(['generic'], { type: 'string' }),
      sessionId: Type.String(),
      message: Type.String({ description: 'The answer.' }),
    },
    { $id: 'ChatAnswer' },
  ),
  {
    examples: [[{ agentId: 'price-desk', agentType: 'generic', sessionId: exampleSession, message: 'Jane Doe did.' }]],
  },
);

const ChatEvents = Type.String({
  description:
    'Server-sent events: `token` with `{"text"}` for each part of the answer. The last event is `done` with a `ChatAnswer`, ' +
    'or `error` with an `ErrorMessage`, which has `retryAfter` in seconds if a later call may succeed.',
});

const exampleOfEvents = `event: token
data: {"text":"Jane Doe did."}

event: done
data: {"agentId":"price-desk","agentType":"generic","sessionId":"${exampleSession}","message":"Jane Doe did."}

`;

const ChatJob = Type.Object({ jobId: Type.String() }, { $id: 'JobCreated' });

const tags = ['Chat'];
const errorsOfChats: readonly ErrorType[] = [
  'resource_not_found',
  'conflict_resource',
  'quota_exceeded',
  'price_unknown',
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
        const { answer } = await chats.run({ ...chat, signal, caller: callerOf(request) });
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
      const gone = whenClientGone(reply);
      const events = await streamAnswer(
        async ({ onText, begin }) => {
          const caller = callerOf(request);
          return (await chats.run({ ...chat, signal: gone, onText, onAccepted: begin, caller })).answer;
        },
        { gone, logger: request.log },
      );
      return await reply
        .headers({ 'session-id': chat.sessionId, ...streamHeaders })
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
        // A message may quote change history from its session. Reading jobs needs other scopes.
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
  const { tenant, clientId, clientName, person, scopes: granted } = credentials;
  return {
    tenant,
    agentId,
    message,
    sessionId: headers['session-id']?.toLowerCase() ?? randomUUID(),
    requestId: id,
    logId: randomUUIDv7(),
    credentials: { clientId, clientName, person, scopes: granted },
  };
}
