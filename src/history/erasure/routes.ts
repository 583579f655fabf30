import { sql } from 'kysely';
import type { HttpServer } from '../../http/http-server-type.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import type { DocumentLists, DocumentRows, Paginator } from '../../pagination/paginator.ts';
import { HistoryPath } from '../routes/schemas.ts';
import { ErasureItem } from './schemas.ts';

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
