import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import type { HistoryReads } from '../history-reads.ts';
import { historyOperation } from '../operation.ts';
import { HistoryPath } from '../schemas.ts';
import { WaysAnswer } from './schemas.ts';

/** How changes come in. For those who may see `recordedBy` of an entry. */
export async function wayRoutes(app: HttpServer, { reads }: { reads: HistoryReads }): Promise<void> {
  app.get(
    '/changelog/:tenant/ways',
    {
      config: { ...historyOperation, scopes: ['changelog.changelog_manage'] },
      schema: {
        operationId: 'listWays',
        tags: ['Change history'],
        summary: 'Listing how changes come in',
        description: 'The ways in which changes were recorded, and when each of them recorded last.',
        params: HistoryPath,
        response: { 200: json(WaysAnswer, { description: 'The ways, the one that recorded last first.' }) },
      },
    },
    async (request) => {
      const { ways, since } = await reads.ways(request.params.tenant);
      return {
        ways: ways.map(({ way, by, recorded }) => ({
          way,
          ...(by === null ? {} : { by }),
          lastRecordedAt: new Date(recorded).toISOString(),
        })),
        ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
      };
    },
  );
}
