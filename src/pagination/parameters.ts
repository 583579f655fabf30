import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AnnalsError } from '../errors.ts';

const defaultPageSize = 60;

/** The `q` of a list, for the route's `querystring` schema. */
export const filterParameter = Type.Optional(
  Type.String({
    $id: 'Filter',
    description:
      'A filter over any field path. The guide to the query language teaches the grammar, the one to pagination the types.',
    examples: ['metadata.version:>1 name.en:Claim*'],
  }),
);

/** The `fields` of a list or a search, for the route's `querystring` schema. */
export const fieldsParameter = Type.Optional(
  Type.String({
    $id: 'Fields',
    description: 'The field paths that are wanted, with commas between them; the id always is.',
    examples: ['name,metadata.version'],
  }),
);

/** The body of a search: the `q` of the list. */
export const SearchBody = Type.Object(
  { q: Type.Optional(Type.String({ description: 'A filter, as in the list.' })) },
  { $id: 'SearchRequest', additionalProperties: false, examples: [{ q: 'metadata.version:>1' }] },
);

/**
 * The paging parameters of a list or a search (spec D), for the route's `querystring` schema. The server's parser of
 * query strings knows the `x-` keywords.
 */
export const pagingParameters = {
  pageNumber: Type.Optional(
    Type.Integer({
      $id: 'PageNumber',
      minimum: 1,
      maximum: 2_147_483_647,
      default: 1,
      description: 'The page to fetch; the first is 1. Ignored with `next` or `prev`.',
      'x-message': 'pageNumber must be >= 1',
      'x-message-above': 'pageNumber must be <= 2147483647',
      // Rule 2: in cursor mode, Annals does not validate it.
      'x-ignored-with': ['next', 'prev'],
    }),
  ),
  pageSize: Type.Optional(
    Type.Integer({
      $id: 'PageSize',
      minimum: 1,
      maximum: 500,
      default: defaultPageSize,
      description: 'Items per page; may change from page to page.',
      'x-message': 'pageSize must be between 1 and 500',
    }),
  ),
  next: Type.Optional(
    Type.String({
      $id: 'Next',
      description: 'The cursor of `X-Next-Cursor`, unchanged: what follows it. Not together with `prev`.',
    }),
  ),
  prev: Type.Optional(
    Type.String({
      $id: 'Prev',
      description: 'The cursor of `X-Prev-Cursor`, unchanged: what comes before it. Not with `next`.',
    }),
  ),
  sort: Type.Optional(
    Type.String({
      $id: 'Sort',
      description:
        '`field:ASC,other:DESC`, up to 8 fields; default `_id:ASC`, which is appended where `_id` is not named.',
      examples: ['metadata.createdAt:DESC'],
    }),
  ),
};

/** The request header that asks for the total, for the route's `headers` schema. */
export const PagingHeaders = Type.Object({
  'x-total-count': Type.Optional(
    Type.String({
      $id: 'WantsTotalCount',
      description: '`true` asks for the total in the answer. Ignored with `next` or `prev`.',
    }),
  ),
});

/** The paging parameters of a request, as its query string and header have them. */
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
