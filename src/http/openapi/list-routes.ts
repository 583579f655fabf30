import type { FastifyReply } from 'fastify';
import { type TSchema, Type } from 'typebox';
import type { ErrorType } from '../../core/errors.ts';
import { arrayBody } from '../../pagination/page-texts.ts';
import type { ListParameters, Page, PageRequest, Paginator } from '../../pagination/paginator.ts';
import {
  fieldsParameter,
  filterParameter,
  PagingHeaders,
  type PagingRequest,
  pagingParameters,
  SearchBody,
} from '../../pagination/parameters.ts';
import type { Credentials } from '../credentials.ts';
import type { HttpServer } from '../http-server-type.ts';
import { optionalBody } from '../json-body.ts';
import type { Scope } from '../scopes.ts';
import { jsonType, pageOf } from './answers.ts';
import type { AnswerHeader } from './components.ts';

const ListQuery = Type.Object({ ...pagingParameters, q: filterParameter, fields: fieldsParameter });
const SearchQuery = Type.Object({ ...pagingParameters, fields: fieldsParameter });

/** A list of documents. */
export interface Listing {
  readonly path: string;
  readonly params: TSchema;
  readonly tags: string[];
  /** The documents in operation ids. */
  readonly name: string;
  /** The plural name of the documents. */
  readonly many: string;
  /** The schema of a document in the list. */
  readonly item: TSchema;
  readonly scopes: readonly Scope[];
  /** Whether `page` applies a restriction. */
  readonly appliesRestriction?: true;
  /** Why its pages are not compressed; default: they are. */
  readonly neverCompressed?: string;
  readonly errors?: readonly ErrorType[];
  readonly headers?: readonly AnswerHeader[];
  /** What the path names in addition to the tenant. Cursors are valid for one list only. */
  of?(params: unknown): string;
  /** A page of the documents and fields that the caller may read. */
  page(request: Pick<ListRequest, 'params' | 'credentials'>, list: ListParameters, page: PageRequest): Promise<Page>;
}

interface ListRequest extends PagingRequest {
  readonly params: unknown;
  readonly query: PagingRequest['query'] & { fields?: string };
  readonly credentials: Credentials;
}

/** The list and the search, which differ only in where `q` is sent (contract 10). */
export function listRoutes(
  app: HttpServer,
  paginator: Paginator,
  {
    path,
    params,
    tags,
    name,
    many,
    item,
    scopes,
    appliesRestriction,
    neverCompressed,
    errors = [],
    headers = [],
    of,
    page,
  }: Listing,
): void {
  async function answer(request: ListRequest, reply: FastifyReply, action: 'list' | 'search', q = '') {
    const { tenant, clientId, restriction } = request.credentials;
    const list = of === undefined ? `${action} ${many}` : `${action} ${many} of ${of(request.params)}`;
    // Cursors of a restricted client are its own.
    const operation = restriction === undefined ? list : `${list} for ${clientId}`;
    const pageRequest = paginator.read(request, { tenant, operation, filter: q });
    const { texts, headers: paging } = await page(request, { q, fields: request.query.fields }, pageRequest);
    return await reply.headers(paging).type(jsonType).send(arrayBody(texts));
  }

  const config = {
    scopes,
    errors,
    ...(appliesRestriction && { appliesRestriction }),
    ...(neverCompressed !== undefined && { neverCompressed }),
  };
  const described = {
    tags,
    params,
    headers: PagingHeaders,
    response: { 200: pageOf(item, `A page of ${many}.`, headers) },
  };
  app.get(
    path,
    {
      config,
      schema: { operationId: `list${name}`, ...described, summary: `Listing ${many}`, querystring: ListQuery },
    },
    async (request, reply) => await answer(request, reply, 'list', request.query.q),
  );

  app.post(
    `${path}/search`,
    {
      preValidation: optionalBody,
      config,
      schema: {
        operationId: `search${name}`,
        ...described,
        summary: `Searching ${many}`,
        querystring: SearchQuery,
        body: SearchBody,
      },
    },
    async (request, reply) => await answer(request, reply, 'search', request.body.q),
  );
}
