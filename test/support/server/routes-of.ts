import type { HttpServer } from '../../../src/http/http-server-type.ts';

export interface ListedRoute {
  readonly method: string;
  /** As it was declared: `/changelog/:tenant/views/:id`. */
  readonly path: string;
}

/** Every route of a server, those too that no document describes. */
export function routesOf(app: Pick<HttpServer, 'printRoutes'>): ListedRoute[] {
  // A tree, in which each line has the path from its parent on.
  const parents: string[] = [];
  return app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', part = '', methods = ''] = /^(.*)[├└]── (\S*) \((.+)\)$/.exec(line) ?? [];
      if (methods === '') return [];
      const depth = indent.length / 4;
      const path = `${parents[depth - 1] ?? ''}${part}`;
      parents[depth] = path;
      return methods.split(', ').map((method) => ({ method, path }));
    });
}
