import { AnnalsError } from '../../core/errors.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { jsonStream } from '../../http/openapi/answers.ts';
import { parseInstant } from '../../query/instant.ts';
import type { AskedDocument } from '../document/document-at.ts';
import { documentBody } from '../document/view.ts';
import type { HistoryReads } from '../history-reads.ts';
import { DocumentAnswer, DocumentQuery } from './document-schemas.ts';
import { historyOperation, timingOf } from './operation.ts';
import { HistoryPath } from './schemas.ts';

/** A document as it was (contract 4, further reads). */
export async function documentRoutes(
  app: HttpServer,
  { reads, now }: { reads: HistoryReads; now: () => number },
): Promise<void> {
  app.get(
    '/changelog/:tenant/documents',
    {
      config: { ...historyOperation, errors: ['resource_not_found'] },
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
      const when = changes === undefined ? { at: momentOf(at, now) } : { changes: onlyChanges(changes, at) };
      const asked: AskedDocument = { entity, entityId, when };
      const begun = performance.now();
      const { found, release } = await reads.document(request.params.tenant, asked);
      reply.headers(timingOf('documents', begun));
      // A client may take a large document slowly; until it has it, the document counts.
      reply.raw.once('close', release);
      if (reply.raw.closed) release();
      return await reply.type('application/json; charset=utf-8').send(documentBody(asked, found));
    },
  );
}

function momentOf(at: string | undefined, now: () => number): number {
  if (at === undefined) return now();
  const instant = parseInstant(at);
  if (typeof instant !== 'string') return instant.millisecond;
  throw violation('at', `at must be ${instant}`);
}

function onlyChanges(changes: number, at: string | undefined): number {
  if (at === undefined) return changes;
  throw violation('changes', 'changes and at cannot be given together');
}

function violation(field: string, message: string): AnnalsError {
  return new AnnalsError('validation_violation', message, { details: [{ field, message }] });
}
