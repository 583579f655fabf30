import type { HttpServer } from '../../http/http-server-type.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { DocumentLists, Paginator } from '../../pagination/paginator.ts';
import type { Database } from '../../postgres/database.ts';
import { AccessesPath, AccessItem } from './schemas.ts';
import { accessRows, dropOldAccesses } from './store.ts';

/** Sign-ins, refusals, reads and exports of a tenant (contract 18). */
export async function accessRoutes(
  app: HttpServer,
  { documents, paginator }: { documents: DocumentLists; paginator: Paginator },
): Promise<void> {
  listRoutes(app, paginator, {
    path: '/changelog/:tenant/accesses',
    params: AccessesPath,
    tags: ['Accesses'],
    name: 'Accesses',
    many: 'accesses',
    item: AccessItem,
    scopes: ['changelog.access_read'],
    page: ({ credentials: { tenant } }, query, page) => documents.page(accessRows(tenant), query, page),
  });
}

// Milliseconds.
const dropEvery = 60 * 60_000;

/** Deletes old accesses while the server listens. */
export async function accessUpkeep(app: HttpServer, { db }: { db: Database }): Promise<void> {
  whileListening(app, {
    upkeep: [{ what: 'the upkeep of accesses', every: dropEvery, work: () => dropOldAccesses(db) }],
  });
}
