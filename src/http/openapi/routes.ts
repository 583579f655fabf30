import type { RouteOptions } from 'fastify';
import { basePathOf } from '../base-path.ts';
import type { HttpServer } from '../http-server-type.ts';
import { openApiDocument } from './document.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** The OpenAPI document of the routes so far, as JSON text. */
    openApiText(): string;
  }
}

export interface DescribedAs {
  version: string;
  /** The public address; left out: the address that the document is read from. */
  baseUrl?: string | undefined;
}

/**
 * The OpenAPI document at `/openapi.json`, made from the schemas that validate. It describes the routes that are added
 * after this call.
 */
export function describeInterface(app: HttpServer, { version, baseUrl }: DescribedAs): void {
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
