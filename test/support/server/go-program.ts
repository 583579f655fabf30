import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Where Debian's package golang-golang-x-mod-dev puts its sources. */
const sources = '/usr/share/gocode';

/** Go's own library is compiled once, and a program is relinked only where something of it has changed. */
const cache = join(import.meta.dirname, '../../../node_modules/.cache/go');

/** Builds a program of Go that uses `golang.org/x/mod`; undefined where the machine has no Go or not these sources. */
export function buildGo(folder: string): string | undefined {
  if (!hasGo) return undefined;
  const output = join(cache, 'programs', basename(folder));
  const { status, stderr } = spawnSync('go', ['build', '-o', output, '.'], {
    cwd: folder,
    env: { ...process.env, GO111MODULE: 'off', GOPATH: sources, GOFLAGS: '', GOCACHE: cache },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return output;
}

export const hasGo = spawnSync('go', ['version']).status === 0 && existsSync(`${sources}/src/golang.org/x/mod/sumdb`);
