import { invalidBody } from '../../core/errors.ts';
import { authorOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { jsonStream, jsonText, jsonType } from '../../http/openapi/answers.ts';
import { documentRoutes } from '../../http/openapi/document-routes.ts';
import type { Scope } from '../../http/scopes.ts';
import { arrayBody } from '../../pagination/page-texts.ts';
import { viewOf } from './item.ts';
import {
  ChangedConfiguration,
  ConfigurationItemSchema,
  ConfigurationList,
  ConfigurationPath,
  ConfigurationsPath,
  ConfigurationsQuery,
  NewConfigurations,
} from './schemas.ts';
import { type SentValue, sentValues } from './sent-values.ts';
import type { Configuration } from './service.ts';

const reading: readonly Scope[] = ['configuration.configuration_view', 'configuration.configuration_manage'];
const writing: readonly Scope[] = ['configuration.configuration_manage'];
const tags = ['Configuration'];
const neverCompressed = 'values can be secrets';

/** Configuration (contract: configuration). */
export async function configurationRoutes(
  app: HttpServer,
  { configuration }: { configuration: Configuration },
): Promise<void> {
  app.get(
    '/configuration/:tenant/configurations',
    {
      config: { scopes: reading, neverCompressed },
      schema: {
        operationId: 'listConfigurations',
        tags,
        summary: 'Retrieving configurations',
        params: ConfigurationsPath,
        querystring: ConfigurationsQuery,
        response: { 200: jsonStream(ConfigurationList, { description: 'The configurations.' }) },
      },
    },
    async (request, reply) => {
      const keys = request.query.keys?.split(',');
      const texts = await configuration.list(request.params.tenant, keys);
      return await reply.type(jsonType).send(arrayBody(texts));
    },
  );

  app.post(
    '/configuration/:tenant/configurations',
    {
      config: { scopes: writing, errors: ['conflict_resource'] },
      schema: {
        operationId: 'createConfigurations',
        tags,
        summary: 'Creating configurations: all of them or none',
        params: ConfigurationsPath,
        body: NewConfigurations,
        response: { 201: jsonText(ConfigurationList, { description: 'The new configurations.' }) },
      },
    },
    async (request, reply) => {
      const values = await sentValues(request.bodyText);
      const sent = request.body.map((item, index) => ({ ...item, ...valueAt(values, index) }));
      const items = await configuration.create(authorOf(request), sent);
      return await reply
        .code(201)
        .type(jsonType)
        .send(`[${items.map((item) => viewOf(item)).join(',')}]`);
    },
  );

  documentRoutes(app, {
    path: '/configuration/:tenant/configurations/:key',
    params: ConfigurationPath,
    tags,
    name: 'Configuration',
    singular: 'configuration',
    read: {
      neverCompressed,
      scopes: reading,
      schema: ConfigurationItemSchema,
      find: async ({ params: { tenant, key } }) => viewOf(await configuration.find(tenant, key)),
    },
    remove: {
      scopes: writing,
      remove: ({ params: { key }, author }) => configuration.remove(author, key),
    },
  });

  app.put(
    '/configuration/:tenant/configurations/:key',
    {
      config: { scopes: writing, errors: ['conflict_resource'] },
      schema: {
        operationId: 'replaceConfiguration',
        tags,
        summary: 'Replacing an existing configuration',
        params: ConfigurationPath,
        body: ChangedConfiguration,
        response: { 200: jsonText(ConfigurationItemSchema, { description: 'The configuration as it is now.' }) },
      },
    },
    async (request, reply) => {
      const { key } = request.params;
      if (request.body.key !== undefined && request.body.key !== key) {
        throw invalidBody({ field: 'key', message: 'must be the key of the path' });
      }
      const sent = { ...request.body, ...valueAt(await sentValues(request.bodyText), 0) };
      const item = await configuration.replace(authorOf(request), key, sent);
      return await reply.type(jsonType).send(viewOf(item));
    },
  );
}

function valueAt(values: readonly SentValue[], index: number): SentValue {
  const value = values[index];
  if (value === undefined) throw new Error('a body that was validated has no value');
  return value;
}
