import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { RouteOptions } from 'fastify';
import type { HttpServer } from '../http-server-type.ts';
import { type OpenApiDocument, openApiDocument } from './document.ts';

/** Scripts, styles and pictures of our own alone: the page works without the internet. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export interface DescribedAs {
  version: string;
  /** The public address; left out: the document's own. */
  baseUrl?: string | undefined;
}

/** The OpenAPI document at `/openapi.json`, made from the schemas that validate. To be called before the routes are added. */
export async function describeInterface(app: HttpServer, { version, baseUrl }: DescribedAs): Promise<void> {
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    if (route.schema?.hide !== true && route.method !== 'HEAD') routes.push(route);
  });
  let document: OpenApiDocument | undefined;
  app.get('/openapi.json', { schema: { hide: true } }, async () => {
    document ??= openApiDocument(routes, { version, baseUrl, basePath: '' });
    return document;
  });
  // The page reads the document from its address.
  await app.register(swagger, { mode: 'static', specification: { document: { openapi: '3.1.0' } as never } });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: pagePolicy,
    uiConfig: { url: '/openapi.json', validatorUrl: null, defaultModelsExpandDepth: 0 },
  });
}
