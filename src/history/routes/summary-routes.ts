import { Type } from 'typebox';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import { queryInteger } from '../../http/query-parameters.ts';
import { queryLimits } from '../../query/parse.ts';
import { plainFieldName } from '../../query/written.ts';
import type { HistoryReads } from '../history-reads.ts';
import { calendarIn } from '../request-times.ts';
import type { FacetField } from '../search/count-store.ts';
import { facetsView } from '../search/facets.ts';
import { histogramView } from '../search/histogram.ts';
import { parseOwnQuery, requireField } from '../search/plan/restriction.ts';
import { type ReadApi, timingOf } from './operation.ts';
import { HistoryPath, HistoryQuery } from './schemas.ts';

const { properties } = HistoryQuery;

const HistogramQuery = Type.Object({
  q: properties.q,
  buckets: Type.Optional(
    queryInteger({
      minimum: 1,
      maximum: 500,
      default: 60,
      message: 'buckets must be between 1 and 500',
      description: 'The maximum number of buckets. Annals chooses the shortest interval that needs no more.',
    }),
  ),
  timeZone: Type.Optional(
    Type.String({
      description: 'An IANA time zone. Buckets of days begin at midnight there. Default: UTC.',
      default: 'UTC',
      examples: ['Europe/Berlin'],
    }),
  ),
});

const entries = (description: string) => Type.Integer({ minimum: 0, format: 'int64', description });
const time = (description: string) => Type.String({ format: 'date-time', description });

const HistogramBucket = Type.Object(
  {
    at: time('When the bucket begins.'),
    count: entries('All entries of the bucket.'),
    create: entries('Those of type `create`.'),
    update: entries('Those of type `update`.'),
    delete: entries('Those of type `delete`.'),
  },
  { $id: 'HistogramBucket' },
);

const HistogramAnswer = Type.Object(
  {
    from: time('The later of the beginning of the window and the oldest entry that matches.'),
    to: time('The upper bound of the query; without one, now.'),
    interval: Type.Object(
      {
        unit: Type.Union([Type.Literal('second'), Type.Literal('minute'), Type.Literal('hour'), Type.Literal('day')]),
        count: Type.Integer({ minimum: 1 }),
      },
      {
        $id: 'HistogramInterval',
        description:
          'The length of a bucket. Buckets begin at multiples of it since 1970-01-01. Buckets of days begin at midnight in `timeZone`.',
      },
    ),
    totalElements: entries('Exact: that of the list of changes. The buckets and `after` add up to it.'),
    buckets: Type.Array(HistogramBucket, {
      description: 'The oldest first. Buckets may be empty. The first and the last one may be partial.',
    }),
    after: entries('Entries later than `to`.'),
  },
  {
    $id: 'ChangeHistogram',
    examples: [
      {
        from: '2026-09-01T09:30:00.000Z',
        to: '2026-09-03T08:00:00.000Z',
        interval: { unit: 'day', count: 1 },
        totalElements: 15,
        buckets: [
          { at: '2026-09-01T00:00:00.000Z', count: 11, create: 3, update: 8, delete: 0 },
          { at: '2026-09-02T00:00:00.000Z', count: 0, create: 0, update: 0, delete: 0 },
          { at: '2026-09-03T00:00:00.000Z', count: 4, create: 1, update: 2, delete: 1 },
        ],
        after: 0,
      },
    ],
  },
);

const FacetsQuery = Type.Object({
  q: properties.q,
  field: Type.String({
    pattern: `^(?:entity|type|actor|actorId|onBehalfOf|path|context\\.[A-Za-z0-9_.]+|context\\."(?:[^"\\\\]|\\\\["\\\\])*")$`,
    maxLength: queryLimits.characters,
    description:
      '`entity`, `type`, `actor`, `actorId`, `onBehalfOf`, `path`, or `context.` and the name of a member, quoted as in `q`.',
    'x-message': 'field must be one of entity, type, actor, actorId, onBehalfOf, path, context.<name>',
    examples: ['actor'],
  }),
  size: properties.size,
});

const FacetsAnswer = Type.Object(
  {
    field: Type.String({ description: 'As it was sent.' }),
    totalElements: entries(
      'Exact: that of the list of changes. The values and `others` add up to it, unless they are paths.',
    ),
    values: Type.Array(
      Type.Object(
        {
          value: Type.String(),
          count: entries('Entries with this value.'),
          name: Type.Optional(
            Type.String({ description: 'Of an `actorId`: the latest name among the entries that count.' }),
          ),
        },
        { $id: 'FacetValue' },
      ),
      { description: 'The values with most entries first. Values with equal counts are in the order of code points.' },
    ),
    others: entries('Entries with any other value, or none. Of paths: how many other paths these entries have.'),
  },
  {
    $id: 'ChangeFacets',
    examples: [
      {
        field: 'actor',
        totalElements: 15,
        values: [
          { value: 'Jane Doe', count: 9 },
          { value: 'system', count: 4 },
        ],
        others: 2,
      },
    ],
  },
);

/** Counts of the entries of a query (contract 4, further reads). */
export function summaryRoutes(app: HttpServer, { reads }: { reads: HistoryReads }, api: ReadApi): void {
  app.get(
    `${api.path}/histogram`,
    {
      config: api.config,
      schema: {
        operationId: api.operationId('getHistogram'),
        tags: [api.tag],
        summary: 'Counting changes over time',
        description: 'Counts the changes that match, by time and type. The counts are exact.',
        params: HistoryPath,
        querystring: HistogramQuery,
        response: {
          200: json(HistogramAnswer, {
            description: 'The changes over time, the oldest first.',
            headers: api.headers,
          }),
        },
      },
    },
    async (request, reply) => {
      const { q = '', buckets: maxBuckets = 60, timeZone } = request.query;
      const calendar = timeZone === undefined ? undefined : calendarIn(timeZone);
      const { restriction } = request.credentials;
      const query = parseOwnQuery(q, request.credentials);
      const begun = performance.now();
      const found = await reads.histogram(request.params.tenant, query, { maxBuckets, calendar, restriction });
      reply.headers(timingOf(found.plan, begun, restriction));
      return histogramView(found);
    },
  );

  app.get(
    `${api.path}/facets`,
    {
      config: api.config,
      schema: {
        operationId: api.operationId('getFacets'),
        tags: [api.tag],
        summary: 'Counting changes by a field',
        description:
          'The most frequent values of a field among the changes that match: entity types, types, actors, their ids, on whose behalf they ' +
          'acted, paths, or a member of the context. The counts are exact.',
        params: HistoryPath,
        querystring: FacetsQuery,
        response: {
          200: json(FacetsAnswer, { description: 'The values with most changes.', headers: api.headers }),
        },
      },
    },
    async (request, reply) => {
      const { q = '', size = 20 } = request.query;
      const field = plainFieldName(request.query.field) as FacetField;
      const { restriction } = request.credentials;
      const query = parseOwnQuery(q, request.credentials);
      requireField(request.credentials, field);
      const begun = performance.now();
      const found = await reads.facets(request.params.tenant, query, { field, size, restriction });
      reply.headers(timingOf(found.plan, begun, restriction));
      return { ...facetsView(found), field: request.query.field };
    },
  );
}
