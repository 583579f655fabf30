import { Type } from 'typebox';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import { queryInteger } from '../../http/query-parameters.ts';
import type { HistoryReads } from '../history-reads.ts';
import { historyOperation } from './operation.ts';
import { HistoryPath } from './schemas.ts';

const fields = [
  Type.Literal('entity'),
  Type.Literal('actor'),
  Type.Literal('related.entity'),
  Type.Literal('path'),
] as const;

const NamesQuery = Type.Object({
  field: Type.Union([...fields], {
    type: 'string',
    'x-message': 'field must be one of entity, actor, related.entity, path',
  }),
  entity: Type.Optional(
    Type.String({
      maxLength: 1_000,
      description: 'The entity type whose paths to list. Default: any. Other fields ignore it.',
      'x-message': 'entity must have at most 1000 characters',
    }),
  ),
  prefix: Type.Optional(
    Type.String({
      maxLength: 1_000,
      description: 'The prefix of the names, case-insensitive. Default: any name.',
      'x-message': 'prefix must have at most 1000 characters',
    }),
  ),
  size: Type.Optional(
    queryInteger({ minimum: 1, maximum: 100, default: 20, message: 'size must be between 1 and 100' }),
  ),
});

const NamesAnswer = Type.Object(
  {
    field: Type.Union([...fields]),
    values: Type.Array(Type.String(), { description: 'In the order of code points.' }),
  },
  { $id: 'ChangeNames', examples: [{ field: 'actor', values: ['Jane Doe', 'jane.smith'] }] },
);

/** The names that entries have (contract 4, further reads). */
export async function nameRoutes(app: HttpServer, { reads }: { reads: HistoryReads }): Promise<void> {
  app.get(
    '/changelog/:tenant/names',
    {
      config: historyOperation,
      schema: {
        operationId: 'listNames',
        tags: ['Change history'],
        summary: 'Listing the names of entities, actors or paths',
        description: 'The names in a field of the query language, of the entries that the service keeps.',
        params: HistoryPath,
        querystring: NamesQuery,
        response: { 200: json(NamesAnswer, { description: 'The first names that begin with the prefix.' }) },
      },
    },
    async (request) => {
      const { field, entity, prefix = '', size = 20 } = request.query;
      const { tenant } = request.params;
      if (field === 'path') return { field, values: await reads.paths(tenant, { entity, prefix, size }) };
      return { field, values: await reads.names(tenant, { field, prefix, size }) };
    },
  );
}
