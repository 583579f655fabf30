import type { FastifyRequest, RouteOptions } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { consoleTargetOf } from './browser-security.ts';
import type { HttpServer } from './http-server-type.ts';
import { pathOf } from './request-head.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route only refuses, in its protocol's words; its methods do not count as allowed. */
    refuses?: true;
  }

  interface FastifyInstance {
    /** The methods that the path of a request has. */
    methodsAt(request: FastifyRequest): string[];
  }
}

interface Path {
  readonly pattern: RegExp;
  readonly methods: ReadonlySet<string>;
  readonly config: NonNullable<RouteOptions['config']>;
}

/** Collects the methods of each route, for 405. Call it before any route is added. */
export function collectMethods(app: HttpServer): void {
  const paths: Path[] = [];
  app.addHook('onRoute', ({ url, method, config = {} }) => {
    if (config.refuses === true) return;
    // CORS answers OPTIONS on any path, and only for a preflight.
    const methods = new Set([method].flat().filter((name) => name !== 'OPTIONS'));
    if (methods.size > 0) paths.push({ pattern: patternOf(url), methods, config });
  });
  app.decorate('methodsAt', (request) => {
    const path = pathOf(request.raw.url ?? '');
    const found = paths.filter(({ pattern, config }) => pattern.test(path) && isReachable(request, config));
    return [...new Set(found.flatMap(({ methods }) => [...methods]))].sort();
  });
}

/** The error for a path without this method: 405 with `Allow` if it has others, else 404 (contract 3). */
export function noSuchOperation(request: FastifyRequest): AnnalsError {
  const methods = request.server.methodsAt(request);
  // A route for all files of a folder may have found none.
  if (methods.length === 0 || methods.includes(request.method)) return nothingAtThisPath();
  const message = `This path has no ${request.method}. Its methods are ${methods.join(', ')}.`;
  return new AnnalsError('method_not_allowed', message, { headers: { Allow: methods.join(', ') } });
}

export function nothingAtThisPath(): AnnalsError {
  return new AnnalsError('resource_not_found', 'There is nothing at this path.');
}

/** `/a/:id/*` as Fastify matches it. */
function patternOf(url: string): RegExp {
  const source = url.replaceAll(/:\w+|\*|[.+?^${}()|[\]\\]/g, (part) =>
    part === '*' ? '.*' : part.startsWith(':') ? '[^/]+' : `\\${part}`,
  );
  return new RegExp(`^${source}$`);
}

/** Under the console's path are its session and the operations of a tenant, but no pages. */
function isReachable({ raw }: FastifyRequest, { scopes, isOfSession, isOfViewer }: Path['config']): boolean {
  const target = consoleTargetOf(raw);
  if (target === undefined) return isOfSession !== true;
  return target === 'session' ? isOfSession === true : scopes !== undefined && isOfViewer !== true;
}
