import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of this package, found upwards from here: the same from src in a checkout and from dist when published. */
export function packageFolder(): string {
  found ??= findPackageFolder();
  return found;
}

let found: string | undefined;

function findPackageFolder(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error(`no package.json above ${import.meta.dirname}`);
    folder = parent;
  }
  return folder;
}

/** The version in package.json. */
export function productVersion(): string {
  const { version }: { version: string } = JSON.parse(readFileSync(join(packageFolder(), 'package.json'), 'utf8'));
  return version;
}
