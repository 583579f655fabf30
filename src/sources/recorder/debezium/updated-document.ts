import { elementsOf, entriesOf, kindOf, objectText } from '../../../core/json/members.ts';
import { parseJson } from '../../../core/json/parse.ts';
import { compactText } from '../../../core/json/text.ts';

/** What a MongoDB update did to a document. Values are JSON text. */
export interface DocumentUpdate {
  readonly updated: readonly { readonly path: string; readonly value: string }[];
  readonly removed: readonly string[];
  readonly truncated: readonly { readonly path: string; readonly size: number }[];
}

/** A value on its way to another one: JSON text, or a container that was opened because something in it changes. */
type Value = string | Map<string, Value> | Value[];

/**
 * The JSON text of a document after an update. A path is MongoDB's: keys and positions joined by dots.
 *
 * @example
 * updatedDocument('{"a":{"b":1}}', { updated: [{ path: 'a.c', value: '2' }], removed: ['a.b'], truncated: [] }); // '{"a":{"c":2}}'
 */
export function updatedDocument(before: string, { updated, removed, truncated }: DocumentUpdate): string {
  const document = opened(before);
  for (const { path, size } of truncated) {
    const array = containerAt(document, path.split('.'));
    if (Array.isArray(array)) array.length = Math.min(array.length, size);
  }
  for (const path of removed) {
    const keys = path.split('.');
    const last = keys.pop() ?? '';
    const parent = containerAt(document, keys);
    if (parent instanceof Map) parent.delete(last);
  }
  for (const { path, value } of updated) setAt(document, path.split('.'), value);
  return textOf(document);
}

function opened(json: string): Value {
  const node = parseJson(json);
  if (kindOf(node) === 'object') return new Map(entriesOf(node).map(([key, value]) => [key, compactText(value)]));
  return kindOf(node) === 'array' ? elementsOf(node).map(compactText) : json;
}

/** The opened child of a container; undefined where there is none. */
function child(parent: Value, key: string): Value | undefined {
  const value = parent instanceof Map ? parent.get(key) : Array.isArray(parent) ? parent[Number(key)] : undefined;
  if (typeof value !== 'string') return value;
  const open = opened(value);
  put(parent, key, open);
  return open;
}

function put(parent: Value, key: string, value: Value): void {
  if (parent instanceof Map) parent.set(key, value);
  else if (Array.isArray(parent)) {
    while (parent.length < Number(key)) parent.push('null');
    parent[Number(key)] = value;
  }
}

function containerAt(document: Value, keys: readonly string[]): Value | undefined {
  let value: Value | undefined = document;
  for (const key of keys) value = value === undefined ? undefined : child(value, key);
  return value;
}

function setAt(document: Value, keys: readonly string[], value: string): void {
  let parent = document;
  for (const key of keys.slice(0, -1)) {
    let next = child(parent, key);
    if (next === undefined || typeof next === 'string') {
      next = new Map();
      put(parent, key, next);
    }
    parent = next;
  }
  put(parent, keys.at(-1) ?? '', value);
}

function textOf(value: Value): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return `[${value.map(textOf).join(',')}]`;
  return objectText([...value].map(([key, member]) => [key, textOf(member)]));
}
