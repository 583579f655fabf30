import { JsonNumber, type JsonValue, type Steps } from '@annals/client/json';
import type { PathChange } from '../api/history-reads.ts';
import { isObjectList, objectLists } from './list-table.tsx';

export type JsonContainer = JsonValue[] | Map<string, JsonValue>;

export function isContainer(value: JsonValue): value is JsonContainer {
  return Array.isArray(value) || value instanceof Map;
}

/** A path with what stood there in two documents. */
type Difference = readonly [path: string, change: PathChange];

/** Values that a step looks at. */
const stepSize = 500;

/**
 * The differences of two documents by path, keys joined by dots. Compares numbers as text. A list of objects that differs
 * is one difference. Undefined: no document.
 */
export function* differences(before: JsonValue | undefined, after: JsonValue | undefined): Steps<Difference[]> {
  const found: Difference[] = [];
  // A stack in place of calls: documents may be nested deeper than calls may be.
  const open: Iterator<Pair>[] = [[{ path: '', before, after }].values()];
  /** The outermost list that is open, with what was found before it. */
  let list: (Pair & { readonly depth: number; readonly count: number }) | undefined;
  for (let count = 1; ; count += 1) {
    if (count % stepSize === 0) yield;
    const members = open.at(-1);
    if (members === undefined) return found;
    const { done, value: pair } = members.next();
    if (done === true) {
      open.pop();
      if (list?.depth !== open.length) continue;
      if (found.length > list.count) {
        found.length = list.count;
        found.push([list.path, { before: list.before, after: list.after }]);
      }
      list = undefined;
    } else if (haveMembers(pair.before, pair.after)) {
      if (list === undefined && objectLists(pair.before, pair.after) !== undefined)
        list = { ...pair, depth: open.length, count: found.length };
      open.push(membersOfBoth(pair));
    } else if (!isSame(pair.before, pair.after)) found.push([pair.path, { before: pair.before, after: pair.after }]);
  }
}

/** Every leaf of a document (scalars and empty containers), with its path. `keepsLists`: lists of objects are leaves. */
export function* leavesOf(document: JsonValue, keepsLists = false): Steps<[path: string, value: JsonValue][]> {
  const found: [string, JsonValue][] = [];
  const open: Iterator<[string, JsonValue]>[] = [[['', document] as [string, JsonValue]].values()];
  for (let count = 1; ; count += 1) {
    if (count % stepSize === 0) yield;
    const members = open.at(-1);
    if (members === undefined) return found;
    const { done, value: member } = members.next();
    if (done === true) {
      open.pop();
      continue;
    }
    const [path, value] = member;
    const isLeaf = !isContainer(value) || keysOf(value).next().done === true || (keepsLists && isObjectList(value));
    if (!isLeaf) open.push(pathsOf(path, value));
    else found.push([path, value]);
  }
}

/** The values at one path of two documents. */
interface Pair {
  readonly path: string;
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

function* membersOfBoth({ path, before, after }: Pair): Generator<Pair> {
  for (const key of keysOf(before)) {
    yield { path: pathOf(path, key), before: memberOf(before, key), after: memberOf(after, key) };
  }
  for (const key of keysOf(after)) {
    if (memberOf(before, key) === undefined)
      yield { path: pathOf(path, key), before: undefined, after: memberOf(after, key) };
  }
}

function* pathsOf(path: string, value: JsonValue): Generator<[string, JsonValue]> {
  for (const key of keysOf(value)) yield [pathOf(path, key), memberOf(value, key) ?? null];
}

function pathOf(path: string, key: string): string {
  const written = key.replace(/[.\\]/g, '\\$&');
  return path === '' ? written : `${path}.${written}`;
}

/** The keys of an object, or the places of an array. */
function* keysOf(value: JsonValue | undefined): Generator<string> {
  if (value instanceof Map) yield* value.keys();
  else if (Array.isArray(value)) for (let index = 0; index < value.length; index += 1) yield String(index);
}

function memberOf(value: JsonValue | undefined, key: string): JsonValue | undefined {
  if (value instanceof Map) return value.get(key);
  return Array.isArray(value) ? value[Number(key)] : undefined;
}

/** Whether both are objects or both are arrays, and neither is empty. */
function haveMembers(was: JsonValue | undefined, is: JsonValue | undefined): boolean {
  if (Array.isArray(was) && Array.isArray(is)) return was.length > 0 && is.length > 0;
  return was instanceof Map && is instanceof Map && was.size > 0 && is.size > 0;
}

function isSame(was: JsonValue | undefined, is: JsonValue | undefined): boolean {
  if (was instanceof JsonNumber && is instanceof JsonNumber) return was.text === is.text;
  if (Array.isArray(was) && Array.isArray(is)) return was.length === 0 && is.length === 0;
  if (was instanceof Map && is instanceof Map) return was.size === 0 && is.size === 0;
  return was === is;
}
