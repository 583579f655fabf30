import { authorOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json, jsonType, pageOf } from '../../http/openapi/answers.ts';
import { Created, documentRoutes } from '../../http/openapi/document-routes.ts';
import type { Scope } from '../../http/scopes.ts';
import { whileListening } from '../../http/while-listening.ts';
import { arrayBody } from '../../pagination/page-texts.ts';
import { PagingHeaders } from '../../pagination/parameters.ts';
import type { Database } from '../../postgres/database.ts';
import { type CustomEntityRoutesOptions, instanceRoutes } from './instance-routes.ts';
import { CustomEntityType, ListQuery, NewCustomEntityType, StoredType, TypePath, TypesPath } from './schemas.ts';
import { createValueIndex } from './value-index.ts';

/** Custom entities (contract 9), with paging for their lists and searches (spec D). */
export async function customEntityRoutes(app: HttpServer, options: CustomEntityRoutesOptions): Promise<void> {
  await app.register(typeRoutes, options);
  await app.register(instanceRoutes, options);
}

const tags = ['Custom entities'];
const reading: readonly Scope[] = ['schema.schema_read', 'schema.schema_manage'];
const writing: readonly Scope[] = ['schema.schema_manage'];

/** Custom entity types (contract 9). */
async function typeRoutes(
  app: HttpServer,
  { customEntities: { types }, paginator }: CustomEntityRoutesOptions,
): Promise<void> {
  app.get(
    '/schema/:tenant/custom-entities',
    {
      config: { scopes: reading },
      schema: {
        operationId: 'listCustomEntityTypes',
        tags,
        summary: 'Listing custom entity types',
        params: TypesPath,
        querystring: ListQuery,
        headers: PagingHeaders,
        response: { 200: pageOf(StoredType, 'A page of types.') },
      },
    },
    async (request, reply) => {
      const { tenant } = request.params;
      const { q = '' } = request.query;
      const page = paginator.read(request, { tenant, operation: 'list types', filter: q });
      const { texts, headers } = await types.list(tenant, q, page);
      return await reply.headers(headers).type(jsonType).send(arrayBody(texts));
    },
  );

  app.post(
    '/schema/:tenant/custom-entities',
    {
      config: { scopes: writing, errors: ['conflict_resource'] },
      schema: {
        operationId: 'createCustomEntityType',
        tags,
        summary: 'Creating a type',
        params: TypesPath,
        body: NewCustomEntityType,
        response: { 201: json(Created, { description: 'The type was created.', headers: ['Location'] }) },
      },
    },
    async (request, reply) => {
      const { tenant } = request.params;
      const id = await types.create(authorOf(request), request.bodyText);
      return await reply.code(201).header('location', `/schema/${tenant}/custom-entities/${id}`).send({ id });
    },
  );

  documentRoutes(app, {
    path: '/schema/:tenant/custom-entities/:type',
    params: TypePath,
    tags,
    name: 'CustomEntityType',
    singular: 'type',
    read: { scopes: reading, schema: StoredType, find: ({ params: { tenant, type } }) => types.find(tenant, type) },
    put: {
      scopes: writing,
      errors: ['conflict_resource'],
      body: CustomEntityType,
      put: ({ params: { type }, request, author }) => types.put(author, type, request.bodyText),
    },
    remove: {
      scopes: writing,
      summary: 'Deleting a type that has no instances',
      remove: ({ params, author }) => types.remove(author, params.type),
    },
  });
}

/** Milliseconds. Built once; checking for it costs next to nothing. */
const lookEvery = 60_000;

/** Builds the index for filters in the background. Queries use it once it exists. */
export async function customEntitiesUpkeep(app: HttpServer, { db }: { db: Database }): Promise<void> {
  whileListening(app, {
    upkeep: [
      {
        what: 'making the index for filters of instances',
        every: lookEvery,
        work: async () => {
          if (await createValueIndex(db)) app.log.info('the index for filters of instances is made');
        },
      },
    ],
  });
}
