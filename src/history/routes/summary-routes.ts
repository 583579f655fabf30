import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import type { HistoryReads } from '../history-reads.ts';
import { calendarIn } from '../request-times.ts';
import { facetsView } from '../search/facets.ts';
import { histogramView } from '../search/histogram.ts';
import { parseOwnQuery, requireActors } from '../search/plan/restriction.ts';
import { type ReadApi, timingOf } from './operation.ts';
import { HistoryPath } from './schemas.ts';
import { FacetsAnswer, FacetsQuery, HistogramAnswer, HistogramQuery } from './summary-schemas.ts';

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
      const query = parseOwnQuery(q, restriction);
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
        summary: 'Counting changes by entity, type or actor',
        description: 'The most frequent values of a field among the changes that match. The counts are exact.',
        params: HistoryPath,
        querystring: FacetsQuery,
        response: {
          200: json(FacetsAnswer, { description: 'The values with most changes.', headers: api.headers }),
        },
      },
    },
    async (request, reply) => {
      const { q = '', field, size = 20 } = request.query;
      const { restriction } = request.credentials;
      if (field === 'actor') requireActors(restriction);
      const query = parseOwnQuery(q, restriction);
      const begun = performance.now();
      const found = await reads.facets(request.params.tenant, query, { field, size, restriction });
      reply.headers(timingOf(found.plan, begun, restriction));
      return facetsView(found);
    },
  );
}
