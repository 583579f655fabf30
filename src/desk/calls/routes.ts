import { parseDays } from '../../http/days.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { DocumentLists, Paginator } from '../../pagination/paginator.ts';
import type { Database } from '../../postgres/database.ts';
import { type FindTenants, forEachTenant } from '../../postgres/tenants/tenants-with.ts';
import { CallItem, CallsPath, CostsAnswer, CostsQuery } from './schemas.ts';
import { callRows, dropOldCalls, sumCalls, unsummedCalls } from './store.ts';
import { readCosts } from './sums.ts';

/** Model calls: by whom, tokens and cost (ai-gateway: call records, costs). */
export async function callRoutes(
  app: HttpServer,
  {
    db,
    documents,
    paginator,
    now,
  }: { db: Database; documents: DocumentLists; paginator: Paginator; now: () => number },
): Promise<void> {
  listRoutes(app, paginator, {
    path: '/usage/:tenant/calls',
    params: CallsPath,
    tags: ['Usage'],
    name: 'ModelCalls',
    many: 'calls of models',
    item: CallItem,
    scopes: ['usage.usage_read'],
    page: ({ credentials: { tenant } }, query, page) => documents.page(callRows(tenant), query, page),
  });

  app.get(
    '/usage/:tenant/costs',
    {
      config: { scopes: ['usage.usage_read'] },
      schema: {
        operationId: 'getCosts',
        tags: ['Usage'],
        summary: 'Retrieving the costs of calls of models',
        description:
          'Exact sums over the calls that began on these days, never deleted. By day and month there is an ' +
          'item for each, also without calls. Otherwise the highest cost comes first.',
        params: CallsPath,
        querystring: CostsQuery,
        response: { 200: json(CostsAnswer, { description: 'The sums.' }) },
      },
    },
    async ({ params: { tenant }, query }) => await readCosts(db, tenant, parseDays(query, now()), query),
  );
}

// Milliseconds.
const dropEvery = 60 * 60_000;
const sumEvery = 5_000;

/** Adds calls to the totals and deletes old records while the server runs. */
export async function callUpkeep(
  app: HttpServer,
  { db, findTenants }: { db: Database; findTenants: FindTenants },
): Promise<void> {
  whileListening(app, {
    upkeep: [
      { what: 'the upkeep of call records', every: dropEvery, work: () => dropOldCalls(db) },
      {
        what: 'the sums of calls',
        every: sumEvery,
        work: async () => await forEachTenant(await findTenants(unsummedCalls), (tenant) => sumCalls(db, tenant)),
      },
    ],
  });
}
