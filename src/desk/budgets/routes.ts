import type { Static } from 'typebox';
import { authorOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import { documentRoutes } from '../../http/openapi/document-routes.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import type { Scope } from '../../http/scopes.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { Paginator } from '../../pagination/paginator.ts';
import { type FindTenants, forEachTenant } from '../../postgres/tenants/tenants-with.ts';
import type { BudgetAlerts } from './alerts.ts';
import { Budget, BudgetBody, BudgetCreated, BudgetItem, BudgetPath, BudgetsPath } from './schemas.ts';
import type { Budgets } from './service.ts';
import { dueBudgets } from './store.ts';

const tags = ['Usage'];
const scopes: readonly Scope[] = ['usage.budget_manage'];

/** Budgets of calls of models. */
export async function budgetRoutes(
  app: HttpServer,
  { budgets, paginator }: { budgets: Budgets; paginator: Paginator },
): Promise<void> {
  listRoutes(app, paginator, {
    path: '/usage/:tenant/budgets',
    params: BudgetsPath,
    tags,
    name: 'Budgets',
    many: 'budgets',
    item: BudgetItem,
    scopes,
    page: ({ credentials: { tenant } }, query, page) => budgets.list(tenant, query, page),
  });

  app.post(
    '/usage/:tenant/budgets',
    {
      config: { scopes, errors: ['conflict_resource'] },
      schema: {
        operationId: 'createBudget',
        tags,
        summary: 'Creating a budget',
        params: BudgetsPath,
        body: BudgetBody,
        response: { 201: json(BudgetCreated, { description: 'The budget was created.', headers: ['Location'] }) },
      },
    },
    async (request, reply) => {
      const { tenant } = request.params;
      const id = await budgets.create(authorOf(request), request.body);
      return await reply.code(201).header('location', `/usage/${tenant}/budgets/${id}`).send({ id });
    },
  );

  documentRoutes(app, {
    path: '/usage/:tenant/budgets/:id',
    params: BudgetPath,
    tags,
    name: 'Budget',
    singular: 'budget',
    read: { scopes, schema: Budget, find: ({ params: { tenant, id } }) => budgets.find(tenant, id) },
    put: {
      scopes,
      errors: ['conflict_resource'],
      body: BudgetBody,
      located: BudgetCreated,
      put: ({ params, request, author }) => budgets.put(author, params.id, request.body as Static<typeof BudgetBody>),
    },
    remove: { scopes, remove: ({ params, author }) => budgets.remove(author, params.id) },
  });
}

// Milliseconds.
const alertEvery = 5_000;

/** Sends e-mails about thresholds while the server runs. */
export async function budgetUpkeep(
  app: HttpServer,
  { alerts, findTenants }: { alerts: BudgetAlerts; findTenants: FindTenants },
): Promise<void> {
  whileListening(app, {
    upkeep: [
      {
        what: 'the alerts of budgets',
        every: alertEvery,
        work: async () => await forEachTenant(await findTenants(dueBudgets), (tenant) => alerts.look(tenant)),
      },
    ],
  });
}
