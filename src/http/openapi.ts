import { STATUS_CODES } from 'node:http';
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import type { HttpServer } from './http-server-type.ts';
import { permittedBy } from './scopes.ts';

const securityScheme = 'oauth2';

/** Scripts, styles and pictures of our own alone: the page works without the internet. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** What the operations are grouped by, in the order of `app.ts`. */
const tags = {
  Authentication: 'OAuth 2.0 client credentials; access tokens are JWTs (RFC 9068).',
  'Change history': 'Version 0.0.1, preview: some features may not be fully operational.',
  Configuration: 'Settings of a tenant; those that are secured are sealed and never come back.',
  'Custom entities': 'Types that a tenant makes, and their instances; lists are paged by number or by cursor.',
  Models: 'The language models of the three providers.',
  Completions: "Text from a chat history, with the tenant's provider token or, within a quota, the service's.",
  Agents: 'Language models with instructions, tools and a provider of their own.',
  Chat: 'Conversations with agents: answered at once, streamed, or by a job.',
  'Agent logs': 'What became of each request and each session of a chat, and the tokens it took.',
  Jobs: 'Work that outlives its request: chats, and exports of the change history.',
  Health: 'For whoever runs the service.',
};

/** The OpenAPI document at `/openapi.json`, made from the schemas that validate, and the page at `/docs`. */
export async function describeInterface(app: HttpServer, { version }: { version: string }): Promise<void> {
  app.addHook('onRoute', describeGuard);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Annals',
        version,
        description: 'Change history, AI desk and honest pagination for platforms with many tenants.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          [securityScheme]: {
            type: 'oauth2',
            flows: {
              clientCredentials: {
                tokenUrl: '/oauth/token',
                scopes: permittedBy,
              },
            },
          },
        },
      },
    },
    transformObject: (document) => nameResponses('openapiObject' in document ? document.openapiObject : {}),
    refResolver: { buildLocalReference: (schema) => String(schema.$id) },
  });
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger());
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: pagePolicy,
    uiConfig: { url: '/openapi.json', validatorUrl: null, defaultModelsExpandDepth: 0 },
  });
}

interface Described {
  paths?: Record<string, Record<string, { responses?: Record<string, { description?: string }> }>>;
}

/** A response that nobody described is called by its status, which says more than the generator's filler. */
function nameResponses<Document extends object>(document: Document): Document {
  for (const path of Object.values((document as Described).paths ?? {})) {
    for (const { responses = {} } of Object.values(path)) {
      for (const [status, response] of Object.entries(responses)) {
        if (response.description === 'Default Response') response.description = STATUS_CODES[status] ?? status;
      }
    }
  }
  return document;
}

/** What every operation under a tenant answers besides its own (contract: errors), told once. */
function describeGuard(route: RouteOptions): void {
  const required = route.config?.scopes;
  if (required === undefined) return;
  const own = (route.schema?.response ?? {}) as Record<string, unknown>;
  const error = (description: string) => ({
    description,
    content: { 'application/json': { schema: Type.Ref('ErrorMessage#') } },
  });
  route.schema = {
    ...route.schema,
    // Any one of them suffices, which in OpenAPI is a list of alternatives.
    security: required.map((scope) => ({ [securityScheme]: [scope] })),
    response: {
      400: error('The path, the query or the body is not valid.'),
      401: {
        description: 'The access token is missing, not valid or expired.',
        content: { 'application/json': { schema: Type.Ref('UnauthorizedFault#') } },
      },
      403: error('The token is for another tenant, or has none of the scopes.'),
      500: error('An internal error.'),
      503: error('The database cannot be reached, or it took too long. `Retry-After` says when to call again.'),
      ...own,
    },
  };
}
