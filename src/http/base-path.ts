import type { HttpServer } from './http-server-type.ts';

/** The path of the public address: `/annals` of `https://example.com/annals`; empty without one. */
export function basePathOf(baseUrl: string | undefined): string {
  return baseUrl === undefined ? '' : new URL(baseUrl).pathname.replace(/\/+$/, '');
}

/**
 * The target without the path of the public address, which a proxy may or may not have stripped. Health checks are not
 * under the public address.
 */
export function withoutBasePath(target: string, basePath: string): string {
  if (basePath === '' || !target.startsWith(basePath)) return target;
  const rest = target.slice(basePath.length);
  if (rest === '' || rest.startsWith('?')) return `/${rest}`;
  return rest.startsWith('/') && !rest.startsWith('/health/') ? rest : target;
}

/** Prefixes each `Location` that is a path of the service with that of the public address. */
export function locateUnder(app: HttpServer, basePath: string): void {
  if (basePath === '') return;
  app.addHook('onSend', (_request, reply, payload, done) => {
    const location = reply.getHeader('location');
    if (typeof location === 'string' && location.startsWith('/')) reply.header('location', `${basePath}${location}`);
    done(null, payload);
  });
}
