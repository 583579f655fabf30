import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';

export const defaultPageSize = 60;

/** The `q` of a list, for the route's `querystring` schema. */
export const filterParameter = Type.Optional(
  Type.String({
    $id: 'Filter',
    description:
      'A filter over any field paths. The guide to the query language describes the grammar, the guide to pagination the types.',
    examples: ['metadata.version:>1 name.en:Claim*'],
  }),
);

/** The `fields` of a list or a search, for the route's `querystring` schema. */
export const fieldsParameter = Type.Optional(
  Type.String({
    $id: 'Fields',
    description:
      'The field paths to answer, separated by commas: at most 100, each of at most 100 keys. The answer always has the id.',
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
      description: 'The number of items on a page. It may differ from page to page.',
      'x-message': 'pageSize must be between 1 and 500',
    }),
  ),
  next: Type.Optional(
    Type.String({
      $id: 'Next',
      description: 'The unchanged value of `X-Next-Cursor`, for the next page. Not together with `prev`.',
    }),
  ),
  prev: Type.Optional(
    Type.String({
      $id: 'Prev',
      description: 'The unchanged value of `X-Prev-Cursor`, for the previous page. Not together with `next`.',
    }),
  ),
  sort: Type.Optional(
    Type.String({
      $id: 'Sort',
      description:
        '`field:ASC,other:DESC`, up to 8 fields. Default: `_id:ASC`, which Annals also adds to a sort without `_id`.',
      examples: ['metadata.createdAt:DESC'],
    }),
  ),
};

/** The request header that asks for the total, for the route's `headers` schema. */
export const PagingHeaders = Type.Object({
  'x-total-count': Type.Optional(
    Type.String({
      $id: 'WantsTotalCount',
      description: 'With `true` the answer has the total. Ignored with `next` or `prev`.',
    }),
  ),
});

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
