import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import type { ErrorType } from '../../core/errors.ts';
import { clientClosedRequest, whenClientGone } from '../../http/client-gone.ts';
import type { Credentials } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json, stream } from '../../http/openapi/answers.ts';
import type { Scope } from '../../http/scopes.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import type { Tokens } from '../../providers/call-ledger.ts';
import type { Message } from '../../providers/port.ts';
import { userOfHeader } from '../end-user.ts';
import { prefetchKeys } from '../prefetch-keys.ts';
import { streamAnswer, streamHeaders } from '../streamed-answer.ts';
import type { Complete, Completion } from './complete.ts';
import { quotaLimits } from './quota.ts';
import {
  CompletionEvents,
  CompletionHeaders,
  CompletionRequest,
  CompletionResponse,
  CompletionsPath,
  CompletionUsage,
  exampleOfEvents,
} from './schemas.ts';
import type { Completions } from './service.ts';

const scopes: readonly Scope[] = ['ai.completion_manage'];
const tags = ['Completions'];
const errors: readonly ErrorType[] = [
  'quota_exceeded',
  'price_unknown',
  'conflict_resource',
  'provider_error',
  'provider_timeout',
];

interface GeneratingRequest extends Pick<FastifyRequest, 'raw'> {
  readonly credentials: Credentials;
  readonly headers: FastifyRequest['headers'] & { readonly 'idempotency-key'?: string };
  readonly body: Static<typeof CompletionRequest>;
  readonly bodyText: string;
}

/** As repeats get it. Older results have no finish reason. */
interface StoredCompletion extends Pick<Completion, 'usage'> {
  readonly result: string;
  readonly finishReason?: Completion['finishReason'];
}

/** Generates completions (spec C) and shows the quota. */
export async function completionRoutes(app: HttpServer, completions: Completions): Promise<void> {
  const { complete, idempotency, quota, tokens } = completions;

  const preParsing = prefetchKeys((tenant) => tokens.own(tenant));

  /** The generated content. A stream and a plain response with the same Idempotency-Key and body are one call. */
  async function generate(
    { credentials, headers, raw, body: { id, messages }, bodyText }: GeneratingRequest,
    gone: AbortSignal,
    streamed?: Parameters<Complete>[2]['stream'],
  ) {
    const { tenant, clientId } = credentials;
    const caller = { tenant, clientId, user: userOfHeader({ headers, raw }) };
    const key = headers['idempotency-key'];
    const conversation = messages.map(({ role, content }) => ({ role: roleOf(role), content }));
    const work = async (signal: AbortSignal | undefined): Promise<StoredCompletion> => {
      const { text, ...completion } = await complete(caller, conversation, { signal, stream: streamed });
      return { result: text, ...completion };
    };
    const {
      result,
      finishReason = 'stop',
      usage,
    } = key === undefined
      ? await work(gone)
      : await idempotency.once({ tenant, clientId, key, bodyText }, () => work(undefined), gone);
    return { ...(id === undefined ? {} : { id }), result, finishReason, usage };
  }

  app.post(
    '/ai-service/:tenant/completions',
    {
      preParsing,
      config: { scopes, work: 'calls', errors },
      schema: {
        operationId: 'createCompletion',
        tags,
        summary: 'Generating a completion',
        params: CompletionsPath,
        headers: CompletionHeaders,
        body: CompletionRequest,
        response: { 200: json(CompletionResponse, { description: 'The completion.' }) },
      },
    },
    async (request, reply) => {
      const gone = whenClientGone(reply);
      try {
        const generated = generate(request, gone);
        request.placeKeptUntil = generated;
        const { usage: _, ...completion } = await generated;
        return completion;
      } catch (error) {
        if (!gone.aborted) throw error;
        return await reply.code(clientClosedRequest as 200).send({});
      }
    },
  );

  app.post(
    '/ai-service/:tenant/completions-stream',
    {
      preParsing,
      config: { scopes, work: 'calls', errors },
      schema: {
        operationId: 'streamCompletion',
        tags,
        summary: 'Generating a completion; the answer is a stream of server-sent events',
        params: CompletionsPath,
        headers: CompletionHeaders,
        body: CompletionRequest,
        response: {
          200: stream(
            { 'text/event-stream': { schema: CompletionEvents, example: exampleOfEvents } },
            { description: 'The events of the completion.' },
          ),
        },
      },
    },
    async (request, reply) => {
      const gone = whenClientGone(reply);
      try {
        const events = await streamAnswer(
          ({ onText, begin }) => {
            const generated = generate(request, gone, { onText, onAnswering: begin });
            request.placeKeptUntil = generated;
            return generated;
          },
          { gone, logger: request.log },
        );
        return await reply.headers(streamHeaders).type('text/event-stream').send(events);
      } catch (error) {
        if (!gone.aborted) throw error;
        return await reply.code(clientClosedRequest as 200).send(Readable.from([]));
      }
    },
  );

  app.get(
    '/ai-service/:tenant/completions/usage',
    {
      config: { scopes },
      schema: {
        operationId: 'getCompletionUsage',
        tags,
        summary: 'Retrieving the quota of the shared token and the token in use',
        params: CompletionsPath,
        response: { 200: json(CompletionUsage, { description: 'The quota and its use.' }) },
      },
    },
    async (request) => {
      const { tenant } = request.params;
      const [own, { used, reserved }] = await Promise.all([tokens.own(tenant), quota.state(tenant)]);
      return {
        token:
          own !== undefined ? ('own' as const) : tokens.shared !== undefined ? ('shared' as const) : ('none' as const),
        limits: view(quotaLimits),
        used: view(used),
        reserved: view(reserved),
        left: view({
          input: Math.max(0, quotaLimits.input - used.input - reserved.input),
          output: Math.max(0, quotaLimits.output - used.output - reserved.output),
        }),
      };
    },
  );
}

function roleOf(role: string): Exclude<Message['role'], 'tool'> {
  const lower = role.toLowerCase();
  return lower === 'system' || lower === 'assistant' ? lower : 'user';
}

function view({ input, output }: Tokens): { inputTokens: number; outputTokens: number } {
  return { inputTokens: input, outputTokens: output };
}

// Milliseconds. Requests of an active tenant do this work themselves; the interval serves the others.
const every = 5_000;
// Shorter than the grace period of `annals serve`. An interrupted call is charged when its lease expires.
const maxCloseWait = 25_000;

/** Runs the upkeep of completions in the background, and waits for running calls on shutdown. */
export async function completionUpkeep(
  app: HttpServer,
  { caller, quota, idempotency, findTenants }: Completions & { findTenants: FindTenants },
): Promise<void> {
  whileListening(app, {
    upkeep: [
      {
        what: 'the upkeep of completions',
        every,
        async work() {
          await quota.upkeep(findTenants);
          await idempotency.upkeep(findTenants);
        },
      },
    ],
    async end() {
      // The server does not wait for calls of disconnected clients.
      await Promise.race([
        Promise.all([idempotency.close(), caller.close()]),
        sleep(maxCloseWait, undefined, { ref: false }),
      ]);
      await quota.close();
    },
  });
}
