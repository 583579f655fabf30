import type { HttpServer } from './http-server-type.ts';

/** The path of the public address: `https://example.com/annals` has `/annals`, one without a path has the empty text. */
export function basePathOf(baseUrl: string | undefined): string {
  return baseUrl === undefined ? '' : new URL(baseUrl).pathname.replace(/\/+$/, '');
}

/**
 * The target without the path of the public address. A proxy may strip that path or leave it. Health is for those who run
 * the service, so it is not under the public address.
 */
export function withoutBasePath(target: string, basePath: string): string {
  if (basePath === '' || !target.startsWith(basePath)) return target;
  const rest = target.slice(basePath.length);
  if (rest === '' || rest.startsWith('?')) return `/${rest}`;
  return rest.startsWith('/') && !rest.startsWith('/health/') ? rest : target;
}

/** Each `Location` that is a path of the service leads below the public address, that of a redirect too. */
export function locateUnder(app: HttpServer, basePath: string): void {
  if (basePath === '') return;
  app.addHook('onSend', (_request, reply, payload, done) => {
    const location = reply.getHeader('location');
    if (typeof location === 'string' && location.startsWith('/')) reply.header('location', `${basePath}${location}`);
    done(null, payload);
  });
}
