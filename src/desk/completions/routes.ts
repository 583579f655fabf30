import { setTimeout as sleep } from 'node:timers/promises';
import { clientClosedRequest, whenClientGone } from '../../http/client-gone.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import type { Scope } from '../../http/scopes.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import type { Message } from '../../providers/port.ts';
import type { Tokens } from '../../providers/provider-caller.ts';
import { quotaLimits } from './quota.ts';
import {
  CompletionHeaders,
  CompletionRequest,
  CompletionResponse,
  CompletionsPath,
  CompletionUsage,
} from './schemas.ts';
import type { Completions } from './service.ts';

const scopes: readonly Scope[] = ['ai.completion_manage'];
const tags = ['Completions'];

/** Generates completions (spec C) and shows the rest of the quota. */
export async function completionRoutes(app: HttpServer, completions: Completions): Promise<void> {
  const { complete, idempotency, quota, tokens } = completions;

  app.post(
    '/ai-service/:tenant/completions',
    {
      config: {
        scopes,
        work: 'calls',
        errors: ['quota_exceeded', 'conflict_resource', 'provider_error', 'provider_timeout'],
      },
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
      const { tenant, clientId } = request.credentials;
      const { id, messages } = request.body;
      const key = request.headers['idempotency-key'];
      const conversation = messages.map(({ role, content }) => ({ role: roleOf(role), content }));
      const gone = whenClientGone(reply);
      try {
        const { text: result, finishReason } =
          key === undefined
            ? await complete(request.credentials, conversation, gone)
            : await idempotency.once(
                { tenant, clientId, key, bodyText: request.bodyText },
                () => complete(request.credentials, conversation, undefined),
                gone,
              );
        return { ...(id === undefined ? {} : { id }), result, finishReason };
      } catch (error) {
        if (!gone.aborted) throw error;
        return await reply.code(clientClosedRequest as 200).send({});
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

// Milliseconds. The requests of an active tenant do this work themselves. The interval serves the other tenants.
const every = 5_000;
// Shorter than the time that `annals serve` gives running requests. A call that is cut is charged when its lease has
// expired.
const maxCloseWait = 25_000;

/** Runs the upkeep of completions in the background, and waits for running calls when the server closes. */
export async function completionUpkeep(
  app: HttpServer,
  { quota, idempotency, findTenants }: Pick<Completions, 'quota' | 'idempotency'> & { findTenants: FindTenants },
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
      // A closing server does not wait for calls whose client has disconnected, so this does.
      await Promise.race([idempotency.close(), sleep(maxCloseWait, undefined, { ref: false })]);
      await quota.close();
    },
  });
}
