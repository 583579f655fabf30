import { authorOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { acceptJsonOf, textAlone } from '../../http/json-body.ts';
import { json, noContent } from '../../http/openapi/answers.ts';
import { Created, documentRoutes } from '../../http/openapi/document-routes.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import type { Scope } from '../../http/scopes.ts';
import type { Paginator } from '../../pagination/paginator.ts';
import { instanceNotFound, reservedInstanceId } from './refusals.ts';
import { CustomInstance, InstanceItem, InstancePath, JsonPatch, StoredInstance, TypePath } from './schemas.ts';
import type { CustomEntities } from './service.ts';

export interface CustomEntityRoutesOptions {
  customEntities: CustomEntities;
  paginator: Paginator;
}

const tags = ['Custom entities'];
const reading: readonly Scope[] = ['schema.custominstance_read', 'schema.custominstance_manage'];
const writing: readonly Scope[] = ['schema.custominstance_manage'];

/** Instances of custom entities (contract 9). */
export async function instanceRoutes(
  app: HttpServer,
  { customEntities: { instances }, paginator }: CustomEntityRoutesOptions,
): Promise<void> {
  acceptJsonOf(app, 'application/json-patch+json');

  listRoutes(app, paginator, {
    path: '/schema/:tenant/custom-entities/:type/instances',
    params: TypePath,
    tags,
    name: 'Instances',
    many: 'instances',
    item: InstanceItem,
    scopes: reading,
    errors: ['resource_not_found'],
    headers: ['Server-Timing'],
    of: typeOf,
    page: ({ params, credentials }, query, page) => instances.list(credentials.tenant, typeOf(params), query, page),
  });

  app.post(
    '/schema/:tenant/custom-entities/:type/instances',
    {
      config: { scopes: writing, errors: ['resource_not_found', 'conflict_resource'] },
      schema: {
        operationId: 'createInstance',
        tags,
        summary: 'Creating an instance',
        params: TypePath,
        body: CustomInstance,
        response: { 201: json(Created, { description: 'The instance was created.', headers: ['Location'] }) },
      },
    },
    async (request, reply) => {
      const { tenant, type } = request.params;
      const author = authorOf(request);
      const id = await instances.create(author, type, textAlone(request));
      const location = `/schema/${tenant}/custom-entities/${type}/instances/${encodeURIComponent(id)}`;
      return await reply.code(201).header('location', location).send({ id });
    },
  );

  documentRoutes(app, {
    path: '/schema/:tenant/custom-entities/:type/instances/:id',
    params: InstancePath,
    tags,
    name: 'Instance',
    singular: 'instance',
    read: {
      scopes: reading,
      schema: StoredInstance,
      find: ({ params: { tenant, type, id } }) => instances.find(tenant, type, id),
    },
    put: {
      scopes: writing,
      errors: ['resource_not_found', 'conflict_resource'],
      body: CustomInstance,
      put: ({ params: { type, id }, request, author }) => instances.put(author, type, id, textAlone(request)),
    },
    remove: {
      scopes: writing,
      async remove({ params: { type, id }, request, author }) {
        // A body with ids is a bulk deletion, not the deletion of an instance of that name.
        if (id === reservedInstanceId && request.body !== undefined) throw instanceNotFound();
        await instances.remove(author, type, id);
      },
    },
  });

  app.patch(
    '/schema/:tenant/custom-entities/:type/instances/:id',
    {
      config: { scopes: writing, errors: ['resource_not_found', 'conflict_resource'] },
      schema: {
        operationId: 'patchInstance',
        tags,
        summary: 'Changing an instance with a JSON Patch',
        params: InstancePath,
        consumes: ['application/json-patch+json', 'application/json'],
        body: JsonPatch,
        response: { 204: noContent('The instance is changed.') },
      },
    },
    async (request, reply) => {
      const { type, id } = request.params;
      await instances.patch(authorOf(request), type, id, textAlone(request) || 'null');
      return await reply.code(204).send();
    },
  );
}

/** For validated parameters. */
function typeOf(params: unknown): string {
  return (params as { type: string }).type;
}
