import type { HttpServer } from '../../http/http-server-type.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { DocumentLists } from '../../pagination/document-lists.ts';
import type { Paginator } from '../../pagination/paginator.ts';
import type { Database } from '../../postgres/database.ts';
import { CallItem, CallsPath } from './schemas.ts';
import { callRows, dropOldCalls } from './store.ts';

/** Which models were called, by whom, and what they used (ai-gateway: call records). */
export async function callRoutes(
  app: HttpServer,
  { documents, paginator }: { documents: DocumentLists; paginator: Paginator },
): Promise<void> {
  listRoutes(app, paginator, {
    path: '/usage/:tenant/calls',
    params: CallsPath,
    tags: ['Usage'],
    name: 'ModelCalls',
    many: 'calls of models',
    item: CallItem,
    scopes: ['usage.usage_read'],
    page: ({ credentials: { tenant } }, asked, wanted) => documents.page(callRows(tenant), asked, wanted),
  });
}

// Milliseconds.
const dropEvery = 60 * 60_000;

/** Deletes old records while the server listens. */
export async function callUpkeep(app: HttpServer, { db }: { db: Database }): Promise<void> {
  whileListening(app, {
    upkeep: [{ what: 'the upkeep of call records', every: dropEvery, work: () => dropOldCalls(db) }],
  });
}
