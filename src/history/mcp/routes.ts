import type { FastifyRequest } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import { loadPart, productVersion } from '../../core/package-folder.ts';
import { noSuchOperation } from '../../http/allowed-methods.ts';
import { ClientGone } from '../../http/client-gone.ts';
import { answerErrorsAs } from '../../http/error-answers.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { UnreadableJson } from '../../http/json-body.ts';
import { historyScopes } from '../../http/scopes.ts';
import type { HistoryTexts } from '../history-texts.ts';

interface McpOptions {
  history: HistoryTexts;
  /** The public address, where programs find out how to sign in; undefined: they cannot. */
  address: string | undefined;
}

/** A call has little more than a query. */
export const maxBodyBytes = 64 * 1024;

/** The codes of JSON-RPC 2.0. */
const parseError = -32_700;
const invalidRequest = -32_600;
const internalError = -32_603;

/** The change history for AI tools, by the Model Context Protocol (contract 18), which also shapes all errors. */
export async function mcpRoutes(app: HttpServer, { history, address }: McpOptions): Promise<void> {
  answerErrorsAs(app, {
    challenge: (request) => challengeOf(request, address),
    fault: ({ message }) => rpcError(invalidRequest, message),
    message: (error) => {
      const { type, message, details } = error;
      return rpcError(codeOf(error), message, { type, ...(details.length > 0 && { details }) });
    },
  });

  app.post(
    '/mcp/:tenant',
    {
      bodyLimit: maxBodyBytes,
      config: { scopes: historyScopes, work: 'reads', appliesRestriction: true, takesKeys: true, takesGrants: true },
      schema: { hide: true },
    },
    async (request, reply) => {
      if (Array.isArray(request.body)) throw new AnnalsError('validation_violation', 'A request is one JSON object.');
      const { tenant, restriction, scopes } = request.credentials;
      const onError = (error: unknown) => {
        if (!(error instanceof ClientGone)) request.log.error({ err: error }, 'a tool of MCP failed');
      };
      // The protocol's package is loaded with the first call: many processes have none.
      const { createMcp } = await loadPart(() => import('./server.ts'));
      const mcp = createMcp(history, productVersion());
      const answer = await mcp({ tenant, restriction, scopes, onError }, webRequest(request), request.body);
      // As a whole: until then the time of the request counts.
      const text = await answer.text();
      const reason: unknown = request.work?.signal.reason;
      if (reason instanceof ClientGone) throw reason;
      return await reply.code(answer.status).headers(Object.fromEntries(answer.headers)).send(text);
    },
  );

  // There are no sessions, and nothing to listen to.
  app.route({
    method: ['GET', 'PUT', 'PATCH', 'DELETE'],
    url: '/mcp/:tenant',
    config: { scopes: historyScopes, takesKeys: true, takesGrants: true, refuses: true },
    schema: { hide: true },
    handler: (request) => {
      throw noSuchOperation(request);
    },
  });
}

/** RFC 9728, 5.1: where the metadata of this tenant's resource is. Nothing comes from `Host`. */
function challengeOf({ headers, params }: FastifyRequest, address: string | undefined): string {
  const parts = [
    ...(headers.authorization === undefined ? [] : ['error="invalid_token"']),
    ...(address === undefined
      ? []
      : [`resource_metadata="${address}/.well-known/oauth-protected-resource/mcp/${tenantOf(params)}"`]),
  ];
  return parts.length === 0 ? 'Bearer' : `Bearer ${parts.join(', ')}`;
}

function tenantOf(params: unknown): string {
  return encodeURIComponent((params as { tenant: string }).tenant);
}

/** Its Accept names both of the protocol's types: the library refuses any other, and every answer is JSON. */
function webRequest({ url, headers }: FastifyRequest): Request {
  const single = Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []));
  const accept = 'application/json, text/event-stream';
  return new Request(new URL(url, 'http://localhost'), {
    method: 'POST',
    headers: { ...Object.fromEntries(single), accept },
  });
}

function codeOf(error: AnnalsError): number {
  if (error instanceof UnreadableJson) return parseError;
  return error.status < 500 ? invalidRequest : internalError;
}

function rpcError(code: number, message: string, data?: Record<string, unknown>) {
  return { jsonrpc: '2.0', id: null, error: { code, message, ...(data && { data }) } };
}
