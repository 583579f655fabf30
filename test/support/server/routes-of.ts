import type { HttpServer } from '../../../src/http/http-server-type.ts';

export interface ListedRoute {
  readonly method: string;
  /** As it was declared: `/changelog/:tenant/views/:id`. */
  readonly path: string;
}

/** Every route of a server, those too that no document describes. */
export function routesOf(app: Pick<HttpServer, 'printRoutes'>): ListedRoute[] {
  // A tree of the parts that paths share. Only some parts end a path.
  const parents: string[] = [];
  return app
    .printRoutes()
    .split('\n')
    .flatMap((line) => {
      const [, indent, part = '', methods] = /^(.*)[├└]── (.*?)(?: \(([A-Z, ]+)\))?$/.exec(line) ?? [];
      if (indent === undefined) return [];
      const depth = indent.length / 4;
      const path = part === '(empty root node)' ? '' : `${parents[depth - 1] ?? ''}${part}`;
      parents[depth] = path;
      return methods?.split(', ').map((method) => ({ method, path })) ?? [];
    });
}
