import { Type } from 'typebox';
import type { HttpServer } from '../../http/http-server-type.ts';
import { jsonStream } from '../../http/openapi/answers.ts';
import { queryInteger } from '../../http/query-parameters.ts';
import type { DocumentRequest } from '../documents/document-at.ts';
import { documentBody } from '../documents/document-text.ts';
import type { HistoryReads } from '../history-reads.ts';
import { documentTime } from '../request-times.ts';
import { restrictedOperation, timingOf } from './operation.ts';
import { HistoryPath } from './schemas.ts';

const DocumentQuery = Type.Object({
  entity: Type.String({ description: 'The type of the document.' }),
  entityId: Type.String({ description: 'The identifier of the document.' }),
  at: Type.Optional(
    Type.String({
      description: 'The moment (RFC 3339, with `Z` or an offset), including changes at this moment. Default: now.',
      examples: ['2026-09-01T09:30:00Z'],
    }),
  ),
  changes: Type.Optional(
    queryInteger({
      minimum: 1,
      maximum: 2_147_483_647,
      message: 'changes must be >= 1',
      messageAbove: 'changes must be <= 2147483647',
      description: 'Instead of `at`: the number of changes after which the document is rebuilt.',
    }),
  ),
});

const DocumentAnswer = Type.Object(
  {
    entity: Type.String(),
    entityId: Type.String(),
    at: Type.String({
      format: 'date-time',
      description: 'The moment. With `changes`, the time of the last of these changes.',
    }),
    exists: Type.Boolean({ description: 'False before its creation and after its deletion.' }),
    complete: Type.Boolean({
      description: 'Whether the document is exactly as it was written. False if a part of its history is missing.',
    }),
    name: Type.Optional(Type.String({ description: 'The display name, if known.' })),
    document: Type.Optional(
      Type.Unknown({
        description: 'The document, if it exists. Numbers keep every digit. Keys do not keep their order.',
      }),
    ),
    changes: Type.Integer({
      minimum: 0,
      format: 'int64',
      description: 'The number of its changes up to this moment that the service keeps.',
    }),
    lastChange: Type.Optional(
      Type.Object(
        {
          at: Type.String({ format: 'date-time' }),
          type: Type.Union([Type.Literal('create'), Type.Literal('update'), Type.Literal('delete')]),
          actor: Type.Optional(Type.String({ description: 'Left out for a reader who does not see actors.' })),
        },
        { $id: 'LastChange', description: 'The last of these changes, if there is one.' },
      ),
    ),
  },
  {
    $id: 'DocumentAtMoment',
    examples: [
      {
        entity: 'product',
        entityId: 'p-17',
        at: '2026-09-01T09:30:00.000Z',
        exists: true,
        complete: true,
        name: 'Desk lamp',
        document: { price: { amount: 34.9, currency: 'EUR' } },
        changes: 3,
        lastChange: { at: '2026-08-29T14:02:11.120Z', type: 'update', actor: 'Jane Doe' },
      },
    ],
  },
);

/** A document as it was (contract 4, further reads). */
export async function documentRoutes(
  app: HttpServer,
  { reads, now }: { reads: HistoryReads; now: () => number },
): Promise<void> {
  app.get(
    '/changelog/:tenant/documents',
    {
      config: { ...restrictedOperation, errors: ['resource_not_found'] },
      schema: {
        operationId: 'getDocument',
        tags: ['Change history'],
        summary: 'Retrieving a document as it was',
        description: 'Rebuilds the document from its history, as it was at a moment or after a number of changes.',
        params: HistoryPath,
        querystring: DocumentQuery,
        response: {
          200: jsonStream(DocumentAnswer, { description: 'The document as it was.', headers: ['Server-Timing'] }),
        },
      },
    },
    async (request, reply) => {
      const { entity, entityId, at, changes } = request.query;
      const document: DocumentRequest = { entity, entityId, when: documentTime({ at, changes }, now) };
      const begun = performance.now();
      const { restriction } = request.credentials;
      const { found, release } = await reads.document(request.params.tenant, { ...document, restriction });
      reply.headers(timingOf('documents', begun, restriction));
      // A large document counts until the client has taken it.
      reply.raw.once('close', release);
      if (reply.raw.closed) release();
      return await reply.type('application/json; charset=utf-8').send(documentBody(document, found));
    },
  );
}
