import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const needed = ['httpx', 'pytest', 'psycopg'];

/** An interpreter of Python that has the packages of the client's tests; undefined where there is none. */
export function findPython(): string | undefined {
  const check = `import importlib.util as i, sys; sys.exit(sys.version_info < (3, 11) or None in map(i.find_spec, ${JSON.stringify(needed)}))`;
  return ['python3', '/usr/bin/python3'].find((program) => spawnSync(program, ['-c', check]).status === 0);
}

const cache = join(import.meta.dirname, '../../../node_modules/.cache/python');

/** Where clients/python/fetch-packages.sh put packages of newer releases; undefined where it did not run. */
export function fetchedPackages(name: 'frameworks' | 'httpx'): string | undefined {
  const folder = join(cache, name);
  return existsSync(join(cache, 'complete')) ? folder : undefined;
}
