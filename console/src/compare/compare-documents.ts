import { JsonNumber, type JsonValue } from '@annals/client/json';
import type { PathChange } from '../api/history-reads.ts';
import { isContainer } from '../components/json-tree.tsx';

/** A path with what stood there in two documents. */
export type Difference = readonly [path: string, change: PathChange];

/**
 * Where two documents differ, path by path: keys joined by dots, as in change entries. Numbers are the same where their texts are.
 * Undefined is a document that does not exist.
 */
export function differences(before: JsonValue | undefined, after: JsonValue | undefined): Difference[] {
  const found: Difference[] = [];
  // A stack in place of calls: documents may be nested deeper than calls may be.
  const open: { path: string; before: JsonValue | undefined; after: JsonValue | undefined }[] = [
    { path: '', before, after },
  ];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { path, before: was, after: is } = next;
    const members = bothMembers(was, is);
    if (members === undefined) {
      if (!isSame(was, is)) found.push([path, { before: was, after: is }]);
      continue;
    }
    const [left, right] = members;
    const keys = new Set([...left.keys(), ...right.keys()]);
    for (const key of [...keys].toReversed())
      open.push({ path: pathOf(path, key), before: left.get(key), after: right.get(key) });
  }
  return found;
}

/** Every value of a document that has no members, with its path. */
export function leavesOf(document: JsonValue): [path: string, value: JsonValue][] {
  const found: [string, JsonValue][] = [];
  const open: [string, JsonValue][] = [['', document]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [path, value] = next;
    const members = isContainer(value) ? [...membersOf(value)] : [];
    if (members.length === 0) found.push([path, value]);
    for (const [key, member] of members.toReversed()) open.push([pathOf(path, key), member]);
  }
  return found;
}

function pathOf(path: string, key: string): string {
  const written = key.replace(/[.\\]/g, '\\$&');
  return path === '' ? written : `${path}.${written}`;
}

type Members = ReadonlyMap<string, JsonValue>;

function membersOf(value: JsonValue): Members {
  if (value instanceof Map) return value;
  return new Map(Array.isArray(value) ? value.map((element, index) => [String(index), element]) : []);
}

/** The members of both, where both are objects or both are arrays, and neither is empty. */
function bothMembers(was: JsonValue | undefined, is: JsonValue | undefined): readonly [Members, Members] | undefined {
  if (was === undefined || is === undefined || !isContainer(was) || !isContainer(is)) return undefined;
  if (Array.isArray(was) !== Array.isArray(is)) return undefined;
  const [left, right] = [membersOf(was), membersOf(is)];
  return left.size > 0 && right.size > 0 ? [left, right] : undefined;
}

function isSame(was: JsonValue | undefined, is: JsonValue | undefined): boolean {
  if (was instanceof JsonNumber && is instanceof JsonNumber) return was.text === is.text;
  if (Array.isArray(was) && Array.isArray(is)) return was.length === 0 && is.length === 0;
  if (was instanceof Map && is instanceof Map) return was.size === 0 && is.size === 0;
  return was === is;
}
