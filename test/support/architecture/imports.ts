import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** A file of `src` imports another one. Both paths are relative to `src`. */
export interface Import {
  from: string;
  to: string;
}

/**
 * The direction of imports, from the top. A module may import from the layers below its own and from itself; modules of
 * one layer do not know each other.
 */
export const layers: readonly (readonly string[])[] = [
  ['main', 'annals-verify'],
  ['cli'],
  ['app'],
  ['context'],
  ['history', 'sources', 'delivery', 'desk', 'tenants', 'access', 'demo'],
  ['proof'],
  ['recording'],
  ['http', 'providers'],
  ['outbound', 'postgres', 'query', 'pagination', 'metrics'],
  ['core'],
];

/** Files that code is in or imports, relative to `src`. */
export function sourceFiles(root: string): string[] {
  const all = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  return all.filter((file) => /\.(?:ts|json)$/.test(file)).sort();
}

export function importsOf(root: string, files: readonly string[]): Import[] {
  const pattern = /\b(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;
  return files.flatMap((from) =>
    [...readFileSync(join(root, 'src', from), 'utf8').matchAll(pattern)].map(([, path = '']) => ({
      from,
      to: relative('src', join('src', dirname(from), path)),
    })),
  );
}

/** The folder below `src`, or the name of a file that stands in `src` itself. */
export function moduleOf(file: string): string {
  return (file.split('/')[0] ?? '').replace(/\.ts$/, '');
}

export function layerOf(module: string): number {
  return layers.findIndex((modules) => modules.includes(module));
}

export function isAgainstTheDirection({ from, to }: Import): boolean {
  const [importer, imported] = [moduleOf(from), moduleOf(to)];
  return importer !== imported && layerOf(imported) <= layerOf(importer);
}

/** Steps between folders of one module from which imports lead back: `a/b → a/c`. */
export function cyclesOfFolders(imports: readonly Import[]): string[] {
  const steps = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    const [above, below] = [dirname(from), dirname(to)];
    if (moduleOf(from) === moduleOf(to) && above !== below)
      steps.set(above, (steps.get(above) ?? new Set()).add(below));
  }
  const reached = (start: string, found = new Set<string>()): Set<string> => {
    for (const next of steps.get(start) ?? []) if (!found.has(next)) reached(next, found.add(next));
    return found;
  };
  return [...steps].flatMap(([above, below]) =>
    [...below].filter((one) => reached(one).has(above)).map((one) => `${above} → ${one}`),
  );
}
