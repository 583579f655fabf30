import type { Steps } from '@annals/client/json';
import type { PathChange } from '../api/history-reads.ts';
import type { Items } from '../components/lazy-list.tsx';

type Paths = Items<readonly [string, PathChange]>;

/** Paths that a step looks at. */
const stepSize = 500;

/** The paths whose names have a part, whatever the case. An empty part finds all. */
export function* findPaths(paths: Paths, part: string): Steps<Paths> {
  if (part === '') return paths;
  const wanted = part.toLowerCase();
  const found: (readonly [string, PathChange])[] = [];
  const all = paths.slice(0, paths.length);
  for (const [index, path] of all.entries()) {
    if (path[0].toLowerCase().includes(wanted)) found.push(path);
    if (index % stepSize === stepSize - 1) yield;
  }
  return found;
}
