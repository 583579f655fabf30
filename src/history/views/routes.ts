import type { HttpServer } from '../../http/http-server-type.ts';
import { json, jsonText, jsonType, noContent } from '../../http/openapi/answers.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { historyScopes, type Scope } from '../../http/scopes.ts';
import type { Paginator } from '../../pagination/paginator.ts';
import { SavedView, SavedViewItem, ViewBody, ViewCreated, ViewPath, ViewsPath } from './schemas.ts';
import type { SavedViews } from './service.ts';

const tags = ['Saved views'];
const writing: readonly Scope[] = ['changelog.changelog_manage'];

/** Saved views of the change history. */
export async function savedViewRoutes(
  app: HttpServer,
  { savedViews, paginator }: { savedViews: SavedViews; paginator: Paginator },
): Promise<void> {
  listRoutes(app, paginator, {
    path: '/changelog/:tenant/views',
    params: ViewsPath,
    tags,
    name: 'Views',
    many: 'saved views',
    item: SavedViewItem,
    scopes: historyScopes,
    page: ({ credentials: { tenant } }, asked, wanted) => savedViews.list(tenant, asked, wanted),
  });

  app.post(
    '/changelog/:tenant/views',
    {
      config: { scopes: writing, errors: ['conflict_resource'] },
      schema: {
        operationId: 'createView',
        tags,
        summary: 'Creating a saved view',
        params: ViewsPath,
        body: ViewBody,
        response: { 201: json(ViewCreated, { description: 'The view was created.', headers: ['Location'] }) },
      },
    },
    async (request, reply) => {
      const { tenant } = request.params;
      const id = await savedViews.create({ tenant, actor: request.credentials.clientName }, request.body);
      return await reply.code(201).header('location', `/changelog/${tenant}/views/${id}`).send({ id });
    },
  );

  app.get(
    '/changelog/:tenant/views/:id',
    {
      config: { scopes: historyScopes, errors: ['resource_not_found'] },
      schema: {
        operationId: 'getView',
        tags,
        summary: 'Retrieving a saved view',
        params: ViewPath,
        response: { 200: jsonText(SavedView, { description: 'The view.' }) },
      },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      return await reply.type(jsonType).send(await savedViews.find(tenant, id));
    },
  );

  app.put(
    '/changelog/:tenant/views/:id',
    {
      config: { scopes: writing, errors: ['conflict_resource'] },
      schema: {
        operationId: 'putView',
        tags,
        summary: 'Creating or replacing a saved view',
        params: ViewPath,
        body: ViewBody,
        response: {
          201: json(ViewCreated, { description: 'The view was created.', headers: ['Location'] }),
          204: noContent('The view is replaced.'),
        },
      },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      const put = await savedViews.put({ tenant, actor: request.credentials.clientName }, id, request.body);
      if (put === 'replaced') return await reply.code(204).send();
      return await reply.code(201).header('location', `/changelog/${tenant}/views/${id}`).send({ id });
    },
  );

  app.delete(
    '/changelog/:tenant/views/:id',
    {
      config: { scopes: writing, errors: ['resource_not_found'] },
      schema: {
        operationId: 'deleteView',
        tags,
        summary: 'Deleting a saved view',
        params: ViewPath,
        response: { 204: noContent('The view is deleted.') },
      },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      await savedViews.remove({ tenant, actor: request.credentials.clientName }, id);
      return await reply.code(204).send();
    },
  );
}
