import type { Static } from 'typebox';
import { authorOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import { documentRoutes } from '../../http/openapi/document-routes.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { historyScopes, type Scope } from '../../http/scopes.ts';
import type { Paginator } from '../../pagination/paginator.ts';
import { SavedView, SavedViewItem, ViewBody, ViewCreated, ViewPath, ViewsPath } from './schemas.ts';
import type { SavedViews } from './service.ts';

const tags = ['Saved views'];
const writing: readonly Scope[] = ['changelog.changelog_manage'];

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
    page: ({ credentials: { tenant } }, parameters, page) => savedViews.list(tenant, parameters, page),
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
      const id = await savedViews.create(authorOf(request), request.body);
      return await reply.code(201).header('location', `/changelog/${tenant}/views/${id}`).send({ id });
    },
  );

  documentRoutes(app, {
    path: '/changelog/:tenant/views/:id',
    params: ViewPath,
    tags,
    name: 'View',
    singular: 'saved view',
    read: {
      scopes: historyScopes,
      schema: SavedView,
      find: ({ params: { tenant, id } }) => savedViews.find(tenant, id),
    },
    put: {
      scopes: writing,
      errors: ['conflict_resource'],
      body: ViewBody,
      located: ViewCreated,
      put: ({ params, request, author }) => savedViews.put(author, params.id, request.body as Static<typeof ViewBody>),
    },
    remove: { scopes: writing, remove: ({ params, author }) => savedViews.remove(author, params.id) },
  });
}
