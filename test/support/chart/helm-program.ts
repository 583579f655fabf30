import { spawnSync } from 'node:child_process';

/** Helm, which npm does not install; undefined where the machine has none. */
export function findHelm(): string | undefined {
  return spawnSync('helm', ['version']).status === 0 ? 'helm' : undefined;
}
