import type { FastifyRequest, FastifySchemaCompiler } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { AnnalsError } from '../errors.ts';
import { queryInteger } from '../http/query-number.ts';
import { compileValidator } from '../http/validation.ts';

const defaultPageSize = 60;

/** The paging parameters of a list or a search (spec D), for the route's `querystring` schema. */
export const pagingParameters = {
  pageNumber: Type.Optional(
    queryInteger({
      minimum: 1,
      maximum: 2_147_483_647,
      default: 1,
      message: 'pageNumber must be >= 1',
      messageAbove: 'pageNumber must be <= 2147483647',
      description: 'The page to fetch; the first is 1. Ignored with `next` or `prev`.',
    }),
  ),
  pageSize: Type.Optional(
    queryInteger({
      minimum: 1,
      maximum: 500,
      default: defaultPageSize,
      message: 'pageSize must be between 1 and 500',
      description: 'Items per page; may change from page to page.',
    }),
  ),
  next: Type.Optional(
    Type.String({
      description: 'The cursor of `X-Next-Cursor`, unchanged: what follows it. Not together with `prev`.',
    }),
  ),
  prev: Type.Optional(
    Type.String({ description: 'The cursor of `X-Prev-Cursor`, unchanged: what comes before it. Not with `next`.' }),
  ),
  sort: Type.Optional(
    Type.String({
      description:
        '`field:ASC,other:DESC`, up to 8 fields; default `_id:ASC`, which is appended where `_id` is not named.',
      examples: ['metadata.createdAt:DESC'],
    }),
  ),
};

/** The request header that asks for the total, for the route's `headers` schema. */
export const PagingHeaders = Type.Object({
  'x-total-count': Type.Optional(
    Type.String({ description: '`true` asks for the total in the answer. Ignored with `next` or `prev`.' }),
  ),
});

/**
 * The validator of a route that is paged: in cursor mode pageNumber is not even validated (contract 10), and `next`
 * with `prev` is told before anything else about them.
 */
export const compilePagingValidator: FastifySchemaCompiler<TSchema> = (schema) => {
  const validate = compileValidator(schema);
  if (schema.httpPart !== 'querystring') return validate;
  return (query: Record<string, unknown>) => {
    const { pageNumber: _, ...withoutPageNumber } = query;
    const hasNext = query.next !== undefined;
    const hasPrev = query.prev !== undefined;
    if (hasNext && hasPrev) return { error: bothCursors() };
    return validate(hasNext || hasPrev ? withoutPageNumber : query);
  };
};

/** What a request asks of a list, as it stands in its query string and header. */
export interface PagingRequest {
  readonly query: {
    pageNumber?: number;
    pageSize?: number;
    next?: string;
    prev?: string;
    sort?: string;
  };
  readonly headers: FastifyRequest['headers'];
}

export type Paging =
  | { readonly mode: 'offset'; readonly pageNumber: number; readonly pageSize: number; readonly wantsTotal: boolean }
  | { readonly mode: 'cursor'; readonly side: 'next' | 'prev'; readonly cursor: string; readonly pageSize: number };

/** Cursor mode is active when `next` or `prev` is present, empty or not (spec D, rule 1). */
export function readPaging({ query, headers }: PagingRequest): Paging {
  const { pageNumber = 1, pageSize = defaultPageSize, next, prev } = query;
  if (next !== undefined && prev !== undefined) throw bothCursors();
  if (next !== undefined) return { mode: 'cursor', side: 'next', cursor: next, pageSize };
  if (prev !== undefined) return { mode: 'cursor', side: 'prev', cursor: prev, pageSize };
  const asked = headers['x-total-count'];
  return { mode: 'offset', pageNumber, pageSize, wantsTotal: String(asked).trim().toLowerCase() === 'true' };
}

function bothCursors(): AnnalsError {
  const message = 'next and prev must not be given together';
  return new AnnalsError('validation_violation', message, {
    details: [
      { field: 'next', message },
      { field: 'prev', message },
    ],
  });
}
