import type { Steps } from '@annals/client/json';
import type { Entry } from '../api/history-reads.ts';

/** A change of a document, with its place in the document's life: the first change is 1. */
export interface NumberedEntry {
  readonly number: number;
  readonly entry: Entry;
}

/** Paths that a step looks at. */
const stepSize = 500;

/**
 * Finds the last change that touched a path of the document. A change of what contains the path, or of what it contains, touches it.
 * Takes changes from the newest on.
 */
export function* lastTouches(changes: Iterable<NumberedEntry>): Steps<(path: string) => NumberedEntry | undefined> {
  const own = new Map<string, NumberedEntry>();
  const inside = new Map<string, NumberedEntry>();
  let count = 0;
  for (const change of changes) {
    for (const path of change.entry.paths.keys()) {
      count += 1;
      if (count % stepSize === 0) yield;
      if (!own.has(path)) own.set(path, change);
      for (const container of containersOf(path)) if (!inside.has(container)) inside.set(container, change);
    }
  }
  return (path) => {
    const candidates = [own.get(path), inside.get(path), ...containersOf(path).map((container) => own.get(container))];
    return candidates.reduce(
      (last, one) => (one !== undefined && (last === undefined || one.number > last.number) ? one : last),
      undefined,
    );
  };
}

/** The paths that contain a path, the whole document too. A dot behind a backslash belongs to a key. */
function containersOf(path: string): string[] {
  const containers = path === '' ? [] : [''];
  for (let offset = 0; offset < path.length; offset += 1) {
    if (path[offset] === '\\') offset += 1;
    else if (path[offset] === '.') containers.push(path.slice(0, offset));
  }
  return containers;
}
