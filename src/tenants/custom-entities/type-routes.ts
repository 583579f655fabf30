import type { HttpServer } from '../../http/http-server-type.ts';
import { json, jsonText, noContent, pageOf } from '../../http/openapi/answers.ts';
import type { Scope } from '../../http/scopes.ts';
import { arrayBody } from '../../pagination/page-texts.ts';
import { PagingHeaders } from '../../pagination/parameters.ts';
import { StoredType } from './answer-schemas.ts';
import type { CustomEntityRoutesOptions } from './route-options.ts';
import { Created, CustomEntityType, ListQuery, NewCustomEntityType, TypePath, TypesPath } from './schemas.ts';

const tags = ['Custom entities'];
const reading: readonly Scope[] = ['schema.schema_read', 'schema.schema_manage'];
const writing: readonly Scope[] = ['schema.schema_manage'];
const jsonType = 'application/json; charset=utf-8';

/** Custom entity types (contract 9). */
export async function typeRoutes(
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
      const wanted = paginator.read(request, { tenant, operation: 'list types', filter: q });
      const { texts, headers } = await types.list(tenant, q, wanted);
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
      const id = await types.create({ tenant, actor: request.credentials.clientName }, request.bodyText);
      return await reply.code(201).header('location', `/schema/${tenant}/custom-entities/${id}`).send({ id });
    },
  );

  app.get(
    '/schema/:tenant/custom-entities/:type',
    {
      config: { scopes: reading, errors: ['resource_not_found'] },
      schema: {
        operationId: 'getCustomEntityType',
        tags,
        summary: 'Retrieving a type',
        params: TypePath,
        response: { 200: jsonText(StoredType, { description: 'The type.' }) },
      },
    },
    async (request, reply) => {
      const { tenant, type } = request.params;
      return await reply.type(jsonType).send(await types.find(tenant, type));
    },
  );

  app.put(
    '/schema/:tenant/custom-entities/:type',
    {
      config: { scopes: writing, errors: ['conflict_resource'] },
      schema: {
        operationId: 'putCustomEntityType',
        tags,
        summary: 'Creating or replacing a type',
        params: TypePath,
        body: CustomEntityType,
        response: {
          201: json(Created, { description: 'The type was created.' }),
          204: noContent('The type is replaced.'),
        },
      },
    },
    async (request, reply) => {
      const { tenant, type } = request.params;
      const put = await types.put({ tenant, actor: request.credentials.clientName }, type, request.bodyText);
      return put === 'created' ? await reply.code(201).send({ id: type }) : await reply.code(204).send();
    },
  );

  app.delete(
    '/schema/:tenant/custom-entities/:type',
    {
      config: { scopes: writing, errors: ['resource_not_found'] },
      schema: {
        operationId: 'deleteCustomEntityType',
        tags,
        summary: 'Deleting a type that has no instances',
        params: TypePath,
        response: { 204: noContent('The type is deleted.') },
      },
    },
    async (request, reply) => {
      const { tenant, type } = request.params;
      await types.remove({ tenant, actor: request.credentials.clientName }, type);
      return await reply.code(204).send();
    },
  );
}
