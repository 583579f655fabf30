import { finish, type JsonValue, stringifyJson } from '@annals/client/json';
import type { PathChange } from '../api/history-reads.ts';
import { differences } from '../compare/compare-documents.ts';
import { objectLists } from '../compare/list-table.tsx';

type Paths = ReadonlyMap<string, PathChange>;

/** Paths of an entry beyond which its lists are not looked up. */
const maxPaths = 500;

/** Whether an entry may have single members of elements of a list: `items.1.quantity`. */
export function hasElements(paths: Paths): boolean {
  return paths.size <= maxPaths && [...paths.keys()].some((path) => /(?:^|\.)\d+\./.test(path));
}

/**
 * Puts a list of objects, as both documents have it, in the place of those paths of an entry that are within it. Paths
 * that the documents do not confirm stay: other changes of the same millisecond may be in them.
 */
export function withLists(paths: Paths, before: JsonValue | undefined, after: JsonValue | undefined): Paths {
  const lists = finish(differences(before, after)).filter(
    ([, change]) => objectLists(change.before, change.after) !== undefined,
  );
  const found = new Map<string, PathChange>();
  for (const [path, change] of paths) {
    const list = lists.find(([name]) => path.startsWith(`${name}.`));
    if (list === undefined) found.set(path, change);
    else if (!found.has(list[0])) {
      const within = pathsWithin(paths, list[0]).map((name) => [name, paths.get(name) ?? {}] as const);
      const isSame = within.every(
        ([name, side]) => isText(valueAt(before, name), side.before) && isText(valueAt(after, name), side.after),
      );
      for (const [name, value] of isSame ? [list] : within) found.set(name, value);
    }
  }
  return found;
}

/** The paths within a list. */
export function pathsWithin(paths: Paths, list: string): string[] {
  return [...paths.keys()].filter((path) => path.startsWith(`${list}.`));
}

function isText(value: JsonValue | undefined, recorded: JsonValue | undefined): boolean {
  if (value === undefined || recorded === undefined) return value === recorded;
  return stringifyJson(value) === stringifyJson(recorded);
}

/** The value at a path, as an entry writes it. */
function valueAt(document: JsonValue | undefined, path: string): JsonValue | undefined {
  return path
    .split(/(?<=(?<!\\)(?:\\\\)*)\./)
    .map((key) => key.replace(/\\([.\\])/g, '$1'))
    .reduce<JsonValue | undefined>((value, key) => {
      if (Array.isArray(value)) return value[Number(key)];
      return value instanceof Map ? value.get(key) : undefined;
    }, document);
}
