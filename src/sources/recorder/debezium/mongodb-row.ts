import {
  elementsOf,
  entriesOf,
  kindOf,
  memberOf,
  membersOf,
  objectText,
  stringOf,
} from '../../../core/json/members.ts';
import { isJsonNumber } from '../../../core/json/number.ts';
import { parseIfJson, parseJson, parseObject } from '../../../core/json/parse.ts';
import type { JsonNode } from '../../../core/json/tape.ts';
import { compactText, sourceText } from '../../../core/json/text.ts';
import type { ChangedValue, Row } from '../../../recording/mapping/row-change.ts';
import { emptyContainer, type Tree, textOfTree, treeAt, treeOf } from '../../../recording/rebuild/document-tree.ts';
import { ColumnRejection } from './column-value.ts';
import type { DebeziumEvent } from './read-event.ts';

/** The sides of a MongoDB event. A document's top-level members are its columns. */
interface MongodbSides {
  readonly before: Row | undefined;
  readonly after: Row | undefined;
  /** The changed values of an update without the document. */
  readonly values: readonly ChangedValue[] | undefined;
}

/** `key`: the document's id as JSON text, from a request header. */
export function mongodbSides(event: DebeziumEvent, key: string | undefined): MongodbSides {
  const before = documentOf(event.before, 'before');
  const after = documentOf(event.after, 'after');
  if (event.op === 'd' && before === undefined && key === undefined) throw new ColumnRejection(withoutId);
  if (event.op !== 'u' || after !== undefined)
    return { before: rowOf(before) ?? keyRow(key), after: rowOf(after), values: undefined };
  const update = updateOf(event.updateDescription);
  if (update === undefined) throw new ColumnRejection('has neither "after" nor "updateDescription"');
  if (before !== undefined)
    return { before: rowOf(before), after: rowOf(updatedDocument(before, update)), values: undefined };
  return { before: undefined, after: knownRow(update, key), values: valuesOf(update) };
}

const settings =
  'set "capture.mode" to "change_streams_update_full_with_pre_image", or send the key in the header X-DEBEZIUM-KEY';
const withoutId = `does not tell the id of its document: ${settings}`;

function keyRow(key: string | undefined): Row | undefined {
  return key === undefined ? undefined : new Map([['_id', key]]);
}

/** The id, and the top-level members that the update sets. */
function knownRow({ updated, truncated }: DocumentUpdate, key: string | undefined): Row {
  if (key === undefined) throw new ColumnRejection(withoutId);
  if (truncated.length > 0) throw new ColumnRejection(`shortens an array that it does not have: ${settings}`);
  const top = updated.filter(({ path }) => !path.includes('.'));
  return new Map([...top.map(({ path, value }): [string, string] => [path, value]), ['_id', key]]);
}

function valuesOf({ updated, removed }: DocumentUpdate): ChangedValue[] {
  return [
    ...removed.map((path) => ({ keys: path.split('.'), after: undefined })),
    ...updated.map(({ path, value }) => ({ keys: path.split('.'), after: value })),
  ];
}

function updateOf(description: JsonNode | undefined): DocumentUpdate | undefined {
  if (description === undefined) return undefined;
  const updated = memberOf(description, 'updatedFields');
  const fields = updated && extended(updated, 'updateDescription.updatedFields');
  const list = (name: string) => {
    const node = memberOf(description, name);
    return node !== undefined && kindOf(node) === 'array' ? elementsOf(node) : [];
  };
  return {
    updated: fields === undefined ? [] : entriesOf(fields).map(([path, value]) => ({ path, value: plainJson(value) })),
    removed: list('removedFields').flatMap((path) => stringOf(path) ?? []),
    truncated: list('truncatedArrays').flatMap((array) => {
      const path = stringOf(memberOf(array, 'field'));
      const size = memberOf(array, 'newSize') ?? memberOf(array, 'size');
      return path === undefined || size === undefined ? [] : [{ path, size: Number(sourceText(size)) }];
    }),
  };
}

/** A document as plain JSON text. */
function documentOf(side: JsonNode | undefined, name: string): string | undefined {
  const document = side && extended(side, name);
  return document && plainJson(document);
}

/**
 * A value of the event: extended JSON in a string, or an object if a converter has parsed that string. Undefined for
 * null.
 */
function extended(side: JsonNode, name: string): JsonNode | undefined {
  if (kindOf(side) === 'object') return side;
  const text = stringOf(side);
  if (text === undefined) return undefined;
  const document = parseObject(text, maxDepth);
  if (document !== undefined) return document;
  throw new ColumnRejection(`"${name}" is no extended JSON of a document`);
}

/** MongoDB's own limit is 100 levels. */
const maxDepth = 500;

function rowOf(document: string | undefined): Row | undefined {
  if (document === undefined) return undefined;
  return new Map(entriesOf(parseJson(document)).map(([field, value]) => [field, sourceText(value)]));
}

/** The document's id in a MongoDB key, as JSON text: the key's only member, which is extended JSON in a string. */
export function idOfKey(key: JsonNode): string {
  const [member = key] = kindOf(key) === 'object' && memberOf(key, '$oid') === undefined ? membersOf(key).values() : [];
  const text = stringOf(member);
  if (text === undefined) return plainJson(member);
  const parsed = parseIfJson(text, maxDepth);
  return parsed === undefined ? JSON.stringify(text) : plainJson(parsed);
}

/**
 * MongoDB's extended JSON (versions 1 and 2) as plain JSON: numbers with their digits, ids and dates as text, bytes as
 * hexadecimal. Types without a JSON form (timestamps, regular expressions, code) are unchanged.
 *
 * @example
 * plainJson(parseJson('{"_id":{"$oid":"5f"},"n":{"$numberLong":"1004"}}')); // '{"_id":"5f","n":1004}'
 */
function plainJson(value: JsonNode): string {
  switch (kindOf(value)) {
    case 'array':
      return `[${elementsOf(value).map(plainJson).join(',')}]`;
    case 'object':
      return wrapped(value) ?? objectText([...membersOf(value)].map(([key, member]) => [key, plainJson(member)]));
    default:
      return compactText(value);
  }
}

const numberNames = ['$numberLong', '$numberInt', '$numberDouble', '$numberDecimal'];

/** The plain value of a wrapper such as `{"$oid": …}`; undefined for any other object. */
function wrapped(object: JsonNode): string | undefined {
  const members = membersOf(object);
  const [first] = members.keys();
  if (first === undefined || !first.startsWith('$') || members.size > 2) return undefined;
  const value = members.get(first) ?? object;
  if (members.size === 2) return first === '$binary' || first === '$type' ? binary(members.get('$binary')) : undefined;
  if (numberNames.includes(first)) {
    const text = stringOf(value) ?? sourceText(value);
    return isJsonNumber(text) ? text : JSON.stringify(text);
  }
  if (first === '$oid' || first === '$uuid' || first === '$symbol') return compactText(value);
  if (first === '$undefined') return 'null';
  if (first === '$date') return date(value);
  return first === '$binary' ? binary(memberOf(value, 'base64')) : undefined;
}

/** Milliseconds since 1970, or text already. */
function date(value: JsonNode): string {
  if (kindOf(value) === 'string') return compactText(value);
  const digits = stringOf(kindOf(value) === 'object' ? memberOf(value, '$numberLong') : undefined) ?? sourceText(value);
  const at = new Date(Number(digits));
  return Number.isNaN(at.getTime()) ? compactText(value) : JSON.stringify(at.toISOString());
}

function binary(value: JsonNode | undefined): string | undefined {
  const base64 = stringOf(value);
  return base64 === undefined ? undefined : JSON.stringify(`\\x${Buffer.from(base64, 'base64').toString('hex')}`);
}

/** What a MongoDB update did to a document. Values are JSON text. */
interface DocumentUpdate {
  readonly updated: readonly { readonly path: string; readonly value: string }[];
  readonly removed: readonly string[];
  readonly truncated: readonly { readonly path: string; readonly size: number }[];
}

/**
 * The JSON text of a document after an update. A path is MongoDB's: keys and positions joined by dots.
 *
 * @example
 * updatedDocument('{"a":{"b":1}}', { updated: [{ path: 'a.c', value: '2' }], removed: ['a.b'], truncated: [] }); // '{"a":{"c":2}}'
 */
function updatedDocument(before: string, { updated, removed, truncated }: DocumentUpdate): string {
  const document = treeOf(before);
  for (const { path, size } of truncated) {
    const array = treeAt(document, path.split('.'));
    if (array?.kind !== 'array') continue;
    for (let place = array.children.size - 1; place >= size; place -= 1) array.children.delete(String(place));
  }
  for (const path of removed) {
    const keys = path.split('.');
    const last = keys.pop() ?? '';
    const parent = treeAt(document, keys);
    if (parent?.kind === 'object') parent.children.delete(last);
  }
  for (const { path, value } of updated) setAt(document, path.split('.'), treeOf(value));
  return textOfTree(document);
}

function setAt(document: Tree, keys: readonly string[], value: Tree): void {
  let parent = document;
  for (const key of keys.slice(0, -1)) {
    let next = treeAt(parent, [key]);
    if (next === undefined || next.kind === 'leaf') {
      next = emptyContainer('object');
      put(parent, key, next);
    }
    parent = next;
  }
  put(parent, keys.at(-1) ?? '', value);
}

function put(parent: Tree, key: string, value: Tree): void {
  if (parent.kind === 'leaf') return;
  if (parent.kind === 'array') {
    for (let place = parent.children.size; place < Number(key); place += 1) {
      parent.children.set(String(place), { kind: 'leaf', text: 'null' });
    }
  }
  parent.children.set(key, value);
}
