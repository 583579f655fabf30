import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const testFiles = ['test/**/*.test.ts', 'console/test/**/*.test.ts', 'clients/viewer/test/**/*.test.ts'];

/** What a test needs that starts anything: servers of the tests, other programs, or a browser. */
const impure = /support\/(?:server|vendor)\/|node:child_process|createServer|playwright/;

/** The test files that start no server, process or browser, nor does what they import from the tests. */
export function pureTests(root: string): string[] {
  const known = new Map<string, boolean>();
  const isPure = (file: string): boolean => {
    const before = known.get(file);
    if (before !== undefined) return before;
    known.set(file, true);
    const text = readFileSync(join(root, file), 'utf8');
    const imported = [...text.matchAll(/from '(\.[^']+\.ts)'/g)]
      .map(([, path = '']) => join(dirname(file), path))
      .filter((path) => /(?:^|\/)test\//.test(path));
    const answer = !imported.some((path) => impure.test(path)) && !impure.test(text) && imported.every(isPure);
    known.set(file, answer);
    return answer;
  };
  return globSync(testFiles, { cwd: root }).filter(isPure);
}
