import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import type { HistoryReads } from '../history-reads.ts';
import { historyOperation } from './operation.ts';
import { ChangeRecorders } from './recorder-schemas.ts';
import { HistoryPath } from './schemas.ts';

/** How changes come in. For those who may see `recordedBy` of an entry. */
export async function changeRecorderRoutes(app: HttpServer, { reads }: { reads: HistoryReads }): Promise<void> {
  app.get(
    '/changelog/:tenant/recorders',
    {
      config: { ...historyOperation, scopes: ['changelog.changelog_manage'] },
      schema: {
        operationId: 'listRecorders',
        tags: ['Change history'],
        summary: 'Listing the recorders of changes',
        description:
          'The service, imports, clients of a recorder or relay, and captures that recorded changes, each with the time of its last recording.',
        params: HistoryPath,
        response: { 200: json(ChangeRecorders, { description: 'The newest first.' }) },
      },
    },
    async (request) => {
      const { recorders, since } = await reads.recorders(request.params.tenant);
      return {
        recorders: recorders.map(({ way, by, recorded }) => ({
          way,
          ...(by === null ? {} : { by }),
          lastRecordedAt: new Date(recorded).toISOString(),
        })),
        ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
      };
    },
  );
}
