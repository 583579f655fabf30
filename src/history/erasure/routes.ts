import { sql } from 'kysely';
import { Type } from 'typebox';
import type { HttpServer } from '../../http/http-server-type.ts';
import { listItem } from '../../http/openapi/components.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import type { DocumentLists, DocumentRows, Paginator } from '../../pagination/paginator.ts';
import { HistoryPath } from '../routes/schemas.ts';
import { erasureReasons } from './subject.ts';

const Erasure = Type.Object(
  {
    id: Type.String({ description: 'What `annals erase` printed.' }),
    begunAt: Type.String({ format: 'date-time' }),
    endedAt: Type.Optional(
      Type.String({ format: 'date-time', description: 'Missing while it is running, or if it was interrupted.' }),
    ),
    reason: Type.Enum([...erasureReasons], { type: 'string' }),
    entries: Type.Integer({ minimum: 0, description: 'The number of changes that it altered.' }),
  },
  {
    $id: 'Erasure',
    description: 'When, why and how much was erased, without the person or document.',
    examples: [
      {
        id: '7c2f6f0e-35a0-4b4a-9a55-1f6f2c0d8e21',
        begunAt: '2026-09-01T09:30:00.000Z',
        endedAt: '2026-09-01T09:30:04.120Z',
        reason: 'request',
        entries: 128,
      },
    ],
  },
);

const ErasureItem = listItem('ErasureItem', Erasure);

/** When, why and how much was erased (proof 4). */
export async function erasureRoutes(
  app: HttpServer,
  { documents, paginator }: { documents: DocumentLists; paginator: Paginator },
): Promise<void> {
  listRoutes(app, paginator, {
    path: '/changelog/:tenant/erasures',
    params: HistoryPath,
    tags: ['Change history'],
    name: 'Erasures',
    many: 'erasures',
    item: ErasureItem,
    scopes: ['changelog.changelog_manage'],
    page: ({ credentials: { tenant } }, list, page) => documents.page(erasureRows(tenant), list, page),
  });
}

const timeText = (column: string) =>
  sql`to_char(${sql.ref(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

function erasureRows(tenant: string): DocumentRows {
  const document = sql`json_strip_nulls(json_build_object('id', erasure, 'begunAt', ${timeText('begun_at')},
    'endedAt', ${timeText('ended_at')}, 'reason', reason, 'entries', entries))::text`;
  const from = sql`(select tenant, erasure::text as id, ${document} as document, (${document})::jsonb as fields
    from change_erasure where tenant = ${tenant}) change_erasure`;
  return { from, where: sql`tenant = ${tenant}` };
}
