import { Type } from 'typebox';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import { documentView } from '../documents/search-documents.ts';
import type { HistoryReads } from '../history-reads.ts';
import { firstMillisecondFrom } from '../request-times.ts';
import { requireField } from '../search/plan/restriction.ts';
import { restrictedOperation } from './operation.ts';
import { HistoryPath, HistoryQuery } from './schemas.ts';

const fields = [
  Type.Literal('entity'),
  Type.Literal('actor'),
  Type.Literal('related.entity'),
  Type.Literal('path'),
] as const;
const document = Type.Literal('document');

const NamesQuery = Type.Object({
  field: Type.Union([...fields, document], {
    type: 'string',
    'x-message': 'field must be one of entity, actor, related.entity, path, document',
  }),
  entity: Type.Optional(
    Type.String({
      maxLength: 1_000,
      description: 'The entity type whose paths or documents to list. Default: any. Other fields ignore it.',
      'x-message': 'entity must have at most 1000 characters',
    }),
  ),
  prefix: Type.Optional(
    Type.String({
      maxLength: 1_000,
      description:
        'The prefix of the names, case-insensitive. Of documents: the beginning of the id, or of words of the name. Default: any name.',
      'x-message': 'prefix must have at most 1000 characters',
    }),
  ),
  changedBefore: Type.Optional(
    Type.String({
      description:
        'A moment (RFC 3339, with `Z` or an offset): only documents whose last change is before it, without those whose id or whole name is the prefix. Other fields ignore it.',
      examples: ['2025-11-23T00:00:00Z'],
    }),
  ),
  size: HistoryQuery.properties.size,
});

const NamesAnswer = Type.Object(
  {
    field: Type.Union([...fields]),
    values: Type.Array(Type.String(), { description: 'In the order of code points.' }),
  },
  { $id: 'ChangeNames', examples: [{ field: 'actor', values: ['Jane Doe', 'jane.smith'] }] },
);

const DocumentNames = Type.Object(
  {
    field: document,
    values: Type.Array(
      Type.Object(
        {
          entity: Type.String({ description: 'The type of the document.' }),
          entityId: Type.String(),
          name: Type.Optional(Type.String({ description: 'The last display name, if known.' })),
          at: Type.String({
            format: 'date-time',
            description: 'When its last change occurred, also if that deleted it.',
          }),
        },
        { $id: 'NamedDocument' },
      ),
      {
        description:
          'The latest changed first. Without `changedBefore` a document whose id is the prefix comes before all others, and those whose whole name is it (case-insensitive) come second.',
      },
    ),
  },
  {
    $id: 'DocumentNames',
    examples: [
      {
        field: 'document',
        values: [{ entity: 'product', entityId: 'p-17', name: 'Desk lamp', at: '2026-08-29T14:02:11.120Z' }],
      },
    ],
  },
);

export async function nameRoutes(app: HttpServer, { reads }: { reads: HistoryReads }): Promise<void> {
  app.get(
    '/changelog/:tenant/names',
    {
      config: restrictedOperation,
      schema: {
        operationId: 'listNames',
        tags: ['Change history'],
        summary: 'Listing the names of entities, actors, paths or documents',
        description:
          'The names in a field of the query language, of the entries that the service keeps. With `field=document`: the documents that have an id or a name that begins so.',
        params: HistoryPath,
        querystring: NamesQuery,
        response: {
          200: json(Type.Union([NamesAnswer, DocumentNames]), {
            description: 'The first names that begin with the prefix, or the documents.',
          }),
        },
      },
    },
    async (request) => {
      const { field, entity, prefix = '', changedBefore, size = 20 } = request.query;
      const { tenant } = request.params;
      const { restriction } = request.credentials;
      requireField(request.credentials, field);
      if (field === 'document') {
        const before = changedBefore === undefined ? undefined : firstMillisecondFrom('changedBefore', changedBefore);
        const search = { entity, prefix, changedBefore: before, size, restriction };
        return { field, values: (await reads.documents(tenant, search)).map(documentView) };
      }
      if (field === 'path') return { field, values: await reads.paths(tenant, { entity, prefix, size, restriction }) };
      return { field, values: await reads.names(tenant, { field, prefix, size, restriction }) };
    },
  );
}
