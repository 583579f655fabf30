import type { RouteOptions } from 'fastify';
import { basePathOf } from '../base-path.ts';
import type { HttpServer } from '../http-server-type.ts';
import { permittedBy } from '../scopes.ts';
import { Components } from './components.ts';
import { describeOperation, securityScheme, viewerScheme } from './operation.ts';

/** The groups of operations, in the order of `app.ts`. */
const tags = {
  Authentication: 'OAuth 2.0 client credentials; access tokens are JWTs (RFC 9068).',
  'Change history': 'Version 0.0.1, preview: some features may not be fully operational.',
  Proof: 'Proof that a history was not altered, in the formats of C2SP.',
  Viewer:
    "A part of the change history for people who are not the tenant's users: customers of a platform in its own pages.",
  'Saved views': 'Queries of the change history that a tenant keeps by name.',
  Subscriptions: 'Deliveries of the change history, such as webhooks, and their state.',
  Configuration: 'Settings of a tenant. Annals encrypts secured ones and never shows them.',
  'Custom entities': 'Types that a tenant defines, and their instances. Lists have pages by number or by cursor.',
  Models: 'The language models of the three providers.',
  Completions: "Text from a chat history, with the tenant's provider token or, within a quota, the service's.",
  Agents: 'Language models with instructions, tools and a provider of their own.',
  Chat: 'Conversations with agents: with a direct answer, a stream, or a job.',
  'Agent logs': 'The outcome and the tokens of each request and each session of a chat.',
  Recording: 'Changes that applications send to the recorder.',
  Jobs: 'Work in the background: chats, and exports of the change history.',
  Usage: 'The usage of a tenant by day: entries, bytes, requests and tokens. The calls of models.',
  Accesses: 'Who signed in, who was refused, and who downloaded exports.',
  Credentials: 'Clients and keys of a tenant: who made them, what they may do, and their last use.',
  Grants: 'What people allowed programs that signed in, and its end.',
  Sessions: 'Who is signed in to the console of a tenant, and the end of their sessions.',
  Health: 'For operators of the service.',
};

interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly [section: string]: unknown;
}

/** The OpenAPI document of these routes, in their order. */
function openApiDocument(
  routes: readonly RouteOptions[],
  { version, baseUrl, basePath }: { version: string; baseUrl: string | undefined; basePath: string },
): OpenApiDocument {
  const components = new Components();
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.url.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}');
    paths[path] = { ...paths[path], [String(route.method).toLowerCase()]: describeOperation(components, route) };
  }
  const scheme = {
    type: 'oauth2',
    flows: { clientCredentials: { tokenUrl: `${basePath}/oauth/token`, scopes: permittedBy } },
  };
  const ofViewer = {
    type: 'http',
    scheme: 'bearer',
    description:
      'A token of `createViewerToken`. No other credential is accepted, and the token is valid for nothing else.',
  };
  const isUsed = routes.some(({ config }) => config?.isOfViewer);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Annals',
      version,
      description:
        'Change history, AI desk and honest pagination for platforms with many tenants. The interface of the change ' +
        'history has version 0.0.1, preview.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl ?? '/' }],
    tags: Object.entries(tags)
      .filter(([name]) => routes.some(({ schema }) => schema?.tags?.includes(name)))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      ...components.toJSON(),
      securitySchemes: { [securityScheme]: scheme, ...(isUsed && { [viewerScheme]: ofViewer }) },
    },
  };
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The OpenAPI document of the routes so far, as JSON text. */
    openApiText(): string;
  }
}

/**
 * The OpenAPI document at `/openapi.json`, made from the schemas that validate, of the routes that are added after this
 * call. `baseUrl`: the public address; default: the one that the document is read from.
 */
export function describeInterface(
  app: HttpServer,
  { version, baseUrl }: { version: string; baseUrl?: string | undefined },
): void {
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    if (route.schema?.hide !== true && route.method !== 'HEAD') routes.push(route);
  });
  const basePath = basePathOf(baseUrl);
  app.decorate('openApiText', () => JSON.stringify(openApiDocument(routes, { version, baseUrl, basePath })));
  let text: string | undefined;
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    text ??= app.openApiText();
    return await reply.type('application/json; charset=utf-8').send(text);
  });
}
