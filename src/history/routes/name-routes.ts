import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import type { HistoryReads } from '../history-reads.ts';
import { NamesAnswer, NamesQuery } from './name-schemas.ts';
import { historyOperation } from './operation.ts';
import { HistoryPath } from './schemas.ts';

/** The names that entries have (contract 4, further reads). */
export async function nameRoutes(app: HttpServer, { reads }: { reads: HistoryReads }): Promise<void> {
  app.get(
    '/changelog/:tenant/names',
    {
      config: historyOperation,
      schema: {
        operationId: 'listNames',
        tags: ['Change history'],
        summary: 'Listing the names of entities or actors',
        description: 'The names in a field of the query language, of the entries that the service keeps.',
        params: HistoryPath,
        querystring: NamesQuery,
        response: { 200: json(NamesAnswer, { description: 'The first names that begin with the prefix.' }) },
      },
    },
    async (request) => {
      const { field, prefix = '', size = 20 } = request.query;
      return { field, values: await reads.names(request.params.tenant, { field, prefix, size }) };
    },
  );
}
