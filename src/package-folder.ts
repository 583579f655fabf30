import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of this package, found upwards from here: the same from src in a checkout and from dist when published. */
export function packageFolder(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error(`no package.json above ${import.meta.dirname}`);
    folder = parent;
  }
  return folder;
}
