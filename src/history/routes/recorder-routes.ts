import { Type } from 'typebox';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import type { HistoryReads } from '../history-reads.ts';
import { maxRecorders } from '../search/names/recorder-store.ts';
import { historyOperation } from './operation.ts';
import { HistoryPath } from './schemas.ts';

const time = (description: string) => Type.String({ format: 'date-time', description });

const ChangeRecorders = Type.Object(
  {
    recorders: Type.Array(
      Type.Object(
        {
          way: Type.Union(
            [
              Type.Literal('service'),
              Type.Literal('import'),
              Type.Literal('recorder'),
              Type.Literal('capture'),
              Type.Literal('relay'),
            ],
            { description: 'As `recordedBy.way` of an entry.' },
          ),
          by: Type.Optional(
            Type.String({ description: 'The client or the capture. Missing for imports and the service itself.' }),
          ),
          lastRecordedAt: time('When it recorded last, by the clock of the service. Exact.'),
        },
        { $id: 'ChangeRecorder' },
      ),
      { description: `The newest first. At most ${maxRecorders}.` },
    ),
    since: Type.Optional(
      time('The list has only recorders that were active after this moment. Without this member the list is complete.'),
    ),
  },
  {
    $id: 'ChangeRecorders',
    examples: [{ recorders: [{ way: 'recorder', by: 'shop', lastRecordedAt: '2026-09-15T10:11:12.345Z' }] }],
  },
);

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
