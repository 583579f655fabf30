import type { Sealer } from '../../core/sealing.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { jsonStream } from '../../http/openapi/answers.ts';
import { parseOwnQuery } from '../ask/restriction.ts';
import { showEntries } from '../entry/shown-entries.ts';
import type { FindPage } from '../find-page.ts';
import type { HistoryReads } from '../history-reads.ts';
import { historyBody } from '../page/history-stream.ts';
import { documentRoutes } from './document-routes.ts';
import { entryRoutes } from './entry-routes.ts';
import { nameRoutes } from './name-routes.ts';
import { mayShowContext, refuseContextWithoutScope, restrictedOperation, timingOf } from './operation.ts';
import { changeRecorderRoutes } from './recorder-routes.ts';
import { ChangelogHistoryResponse, HistoryPath, HistoryQuery } from './schemas.ts';
import { summaryRoutes } from './summary-routes.ts';

export interface ChangelogRoutesOptions {
  findPage: FindPage;
  reads: HistoryReads;
  sealer: Sealer;
  now: () => number;
}

/** Change history (spec A). */
export async function changelogRoutes(app: HttpServer, options: ChangelogRoutesOptions): Promise<void> {
  const { findPage, sealer } = options;
  await summaryRoutes(app, options);
  await nameRoutes(app, options);
  await documentRoutes(app, options);
  await entryRoutes(app, options);
  await changeRecorderRoutes(app, options);

  app.get(
    '/changelog/:tenant/changelogs',
    {
      onRequest: refuseContextWithoutScope,
      config: restrictedOperation,
      schema: {
        operationId: 'listChanges',
        tags: ['Change history'],
        summary: 'Retrieving change history',
        description: 'Version 0.0.1, preview: some features may not be fully operational.',
        params: HistoryPath,
        querystring: HistoryQuery,
        response: {
          200: jsonStream(ChangelogHistoryResponse, {
            description: 'A page of changes, newest first.',
            headers: ['Server-Timing'],
          }),
        },
      },
    },
    async (request, reply) => {
      const { q = '', page = 1, size = 20, context, valueLimit } = request.query;
      const { tenant } = request.params;
      const { restriction } = request.credentials;
      const withContext = mayShowContext(context, request.credentials);
      const withIdentity = request.query.ref === 'true';
      const query = parseOwnQuery(q, restriction);
      const asked = { skip: (page - 1) * size, size, inPieces: true, withContext, withIdentity, restriction };
      const begun = performance.now();
      const found = await findPage(tenant, query, asked);
      reply.headers(timingOf(found.way, begun, restriction));
      const shown = await showEntries(sealer, tenant, found, { ref: withIdentity, valueLimit, restriction });
      const body = historyBody(shown, { page, size });
      return await reply.type('application/json; charset=utf-8').send(body);
    },
  );
}
