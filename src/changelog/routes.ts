import type { HttpServer } from '../http/http-server-type.ts';
import { jsonStream } from '../http/openapi/answers.ts';
import { insufficientScopes, mayReadContext } from '../http/scopes.ts';
import { parseQuery } from '../query/parse.ts';
import { changelogDialect } from './dialect.ts';
import type { FindPage } from './find-page.ts';
import type { HistoryReads } from './history-reads.ts';
import { historyOperation } from './operation.ts';
import { historyBody } from './read/history-stream.ts';
import { ChangelogHistoryResponse, HistoryPath, HistoryQuery } from './schemas.ts';
import { summaryRoutes } from './summary/routes.ts';

export interface ChangelogRoutesOptions {
  findPage: FindPage;
  reads: HistoryReads;
}

/** Change history (spec A). */
export async function changelogRoutes(app: HttpServer, { findPage, reads }: ChangelogRoutesOptions): Promise<void> {
  await summaryRoutes(app, { reads });

  app.get(
    '/changelog/:tenant/changelogs',
    {
      config: historyOperation,
      schema: {
        operationId: 'listChanges',
        tags: ['Change history'],
        summary: 'Retrieving change history',
        description: 'Version 0.0.1, preview: some features may not be fully operational.',
        params: HistoryPath,
        querystring: HistoryQuery,
        response: { 200: jsonStream(ChangelogHistoryResponse, { description: 'A page of changes, newest first.' }) },
      },
    },
    async (request, reply) => {
      const { q = '', page = 1, size = 20, context } = request.query;
      const withContext = context === 'true';
      if (withContext && !mayReadContext(request.credentials.scopes)) throw insufficientScopes();
      const query = parseQuery(q, changelogDialect);
      const asked = { skip: (page - 1) * size, size, inPieces: true, withContext };
      const found = await findPage(request.params.tenant, query, asked);
      const body = historyBody(found, { page, size });
      return await reply.type('application/json; charset=utf-8').send(body);
    },
  );
}
