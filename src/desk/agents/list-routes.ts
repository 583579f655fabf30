import type { FastifyReply } from 'fastify';
import type { TSchema } from 'typebox';
import type { Credentials } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { optionalBody } from '../../http/json-body.ts';
import { jsonType, pageOf } from '../../http/openapi/answers.ts';
import type { Scope } from '../../http/scopes.ts';
import type { DocumentRows } from '../../pagination/document-lists.ts';
import { arrayBody } from '../../pagination/page-texts.ts';
import { PagingHeaders, type PagingRequest, SearchBody } from '../../pagination/parameters.ts';
import type { AgentRoutesOptions } from './route-options.ts';
import { AgentsPath, ListQuery, SearchQuery } from './schemas.ts';

const agentic = '/ai-service/:tenant/agentic';

/** A list of documents. */
export interface Listing {
  /** Under `/ai-service/{tenant}/agentic`. */
  readonly path: string;
  readonly tags: string[];
  /** The name of one document in an operation id. */
  readonly one: string;
  /** The schema of a document in the list. */
  readonly item: TSchema;
  /** The plural name of the documents. A cursor of one list is valid only for this name. */
  readonly many: string;
  readonly scopes: readonly Scope[];
  /** The documents that the caller may read, without the fields that the caller may not read. */
  rowsFor(credentials: Credentials): DocumentRows;
}

interface ListRequest extends PagingRequest {
  readonly query: PagingRequest['query'] & { fields?: string };
  readonly credentials: Credentials;
}

/** The list and the search. They differ only in where the client sends `q` (contract 10). */
export function listRoutes(
  app: HttpServer,
  { agents: { documents }, paginator }: AgentRoutesOptions,
  { path, tags, one, many, item, scopes, rowsFor }: Listing,
): void {
  async function answer(request: ListRequest, reply: FastifyReply, action: 'list' | 'search', q = '') {
    const { credentials, query } = request;
    const wanted = paginator.read(request, { tenant: credentials.tenant, operation: `${action} ${many}`, filter: q });
    const { texts, headers } = await documents.page(rowsFor(credentials), { q, fields: query.fields }, wanted);
    return await reply.headers(headers).type(jsonType).send(arrayBody(texts));
  }

  const described = {
    tags,
    params: AgentsPath,
    headers: PagingHeaders,
    response: { 200: pageOf(item, `A page of ${many}.`) },
  };
  app.get(
    `${agentic}${path}`,
    {
      config: { scopes },
      schema: { operationId: `list${one}s`, ...described, summary: `Listing ${many}`, querystring: ListQuery },
    },
    async (request, reply) => await answer(request, reply, 'list', request.query.q),
  );

  app.post(
    `${agentic}${path}/search`,
    {
      preValidation: optionalBody,
      config: { scopes },
      schema: {
        operationId: `search${one}s`,
        ...described,
        summary: `Searching ${many}`,
        querystring: SearchQuery,
        body: SearchBody,
      },
    },
    async (request, reply) => await answer(request, reply, 'search', request.body.q),
  );
}
