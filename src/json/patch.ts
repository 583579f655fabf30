import { elementsOf, kindOf, membersOf, objectText } from './members.ts';
import { PatchFault, type PatchOperation, type PatchReason } from './patch-operation.ts';
import { arrayIndexOf } from './pointer.ts';
import { type JsonSize, maxDocument, sizeOfJson } from './size.ts';
import { cellsOfNode, firstChild, type JsonNode, nextChild } from './tape.ts';
import { compactText, decodedString, isSameScalar } from './text.ts';

/** Maximum levels of arrays and objects in a document. */
export const maxPatchedLevels = 100;
/**
 * Maximum size of all that a patch adds, moves and copies. Otherwise a patch of 1 KiB could copy a document a thousand
 * times.
 */
const maxMoved = { bytes: 4 * 1_048_576, values: 4 * maxDocument.values } as const;

/** A value as it was parsed, or, after a change inside of it, its members or elements. */
type Tree = JsonNode | Branch;
type Branch = Map<string, Tree> | Tree[];

/**
 * Applies a patch to a document and returns the JSON text of the new document. Values that no operation changes keep
 * their text. Throws PatchFault for the first operation that fails, and before an operation that would make the document
 * larger than `maxDocument` or deeper than `maxPatchedLevels`. It applies all operations or none.
 *
 * @example
 * applyPatch(parseJson('{"price":1.10}'), [{ op: 'move', from: ['price'], path: ['cost'] }]); // '{"cost":1.10}'
 */
export function applyPatch(document: JsonNode, operations: readonly PatchOperation[]): string {
  const patched = new PatchedDocument(document);
  for (const [index, operation] of operations.entries()) patched.apply(operation, index);
  return textOf(patched.root);
}

class PatchedDocument {
  root: Tree;
  #index = 0;
  #bytes: number;
  #values: number;
  #movedBytes = 0;
  #movedValues = 0;

  constructor(document: JsonNode) {
    this.root = document;
    const { bytes, values } = sizeOfJson(document);
    this.#bytes = bytes;
    this.#values = values;
  }

  apply(operation: PatchOperation, index: number): void {
    this.#index = index;
    const { op, path } = operation;
    switch (op) {
      case 'test':
        if (!isEqual(this.#find(path), operation.value)) throw this.#fault('test failed');
        break;
      case 'remove':
        if (path.length === 0) throw this.#fault('document');
        this.#remove(path);
        break;
      case 'add':
        this.#add(path, operation.value);
        break;
      case 'replace':
        this.#find(path);
        this.#replace(path, operation.value);
        break;
      case 'copy':
        this.#add(path, this.#find(operation.from, 'from'), { isCopy: true });
        break;
      case 'move':
        this.#move(operation.from, path);
    }
  }

  #move(from: readonly string[], path: readonly string[]): void {
    if (path.length > from.length && from.every((key, level) => key === path[level])) throw this.#fault('into itself');
    const value = this.#find(from, 'from');
    if (path.length === from.length && from.every((key, level) => key === path[level])) return;
    // RFC 6902, 4.4: the target is looked up after the value is removed from its old place.
    this.#remove(from);
    this.#add(path, value);
  }

  /** Adds a value, or replaces an existing member. A copy stays independent of its source. */
  #add(path: readonly string[], value: Tree, { isCopy = false } = {}): void {
    const key = path.at(-1);
    const holder = this.#holderOf(path);
    if (key === undefined || holder === undefined || (holder instanceof Map && holder.has(key))) {
      this.#replace(path, value, { isCopy });
      return;
    }
    const comma = sizeOfBranch(holder) > 0 ? 1 : 0;
    if (holder instanceof Map) {
      this.#grow(path, sizeOf(value), bytesOfKey(key) + comma);
      holder.set(key, isCopy ? copyOf(value) : value);
      return;
    }
    const place = key === '-' ? holder.length : arrayIndexOf(key);
    if (place === undefined || place > holder.length) throw this.#fault('beyond');
    this.#grow(path, sizeOf(value), comma);
    holder.splice(place, 0, isCopy ? copyOf(value) : value);
  }

  /** Replaces an existing value. */
  #replace(path: readonly string[], value: Tree, { isCopy = false } = {}): void {
    const former = sizeOf(this.#find(path));
    this.#grow(path, sizeOf(value), -former.bytes, -former.values);
    const key = path.at(-1);
    const holder = this.#holderOf(path);
    const placed = isCopy ? copyOf(value) : value;
    if (key === undefined || holder === undefined) this.root = placed;
    else if (holder instanceof Map) holder.set(key, placed);
    else holder[Number(key)] = placed;
  }

  #remove(path: readonly string[]): void {
    const { bytes, values } = sizeOf(this.#find(path));
    const key = path.at(-1) ?? '';
    const holder = this.#holderOf(path);
    if (holder instanceof Map) holder.delete(key);
    else holder?.splice(Number(key), 1);
    const comma = holder !== undefined && sizeOfBranch(holder) > 0 ? 1 : 0;
    this.#bytes -= bytes + comma + (holder instanceof Map ? bytesOfKey(key) : 0);
    this.#values -= values;
  }

  /** Counts what an operation will add. Refuses the operation before it runs. */
  #grow(path: readonly string[], size: JsonSize, otherBytes: number, otherValues = 0): void {
    this.#movedBytes += size.bytes;
    this.#movedValues += size.values;
    if (this.#movedBytes > maxMoved.bytes || this.#movedValues > maxMoved.values) throw this.#fault('too much moved');
    if (path.length + size.levels > maxPatchedLevels) throw this.#fault('too deep');
    const [bytes, values] = [size.bytes + otherBytes, size.values + otherValues];
    this.#bytes += bytes;
    this.#values += values;
    // A document that is too large already may become smaller in steps.
    if (bytes > 0 && this.#bytes > maxDocument.bytes) throw this.#fault('too many bytes');
    if (values > 0 && this.#values > maxDocument.values) throw this.#fault('too many values');
  }

  /** The value at a path. It must exist. */
  #find(path: readonly string[], at: 'path' | 'from' = 'path'): Tree {
    const key = path.at(-1);
    const holder = this.#holderOf(path, at);
    if (key === undefined || holder === undefined) return this.root;
    const value = childOf(holder, key);
    if (value === undefined) throw this.#fault('nothing', at);
    return value;
  }

  /** The container of the value at a path, in a form that can be changed; undefined for the document itself. */
  #holderOf(path: readonly string[], at: 'path' | 'from' = 'path'): Branch | undefined {
    if (path.length === 0) return undefined;
    let holder = branchOf(this.root);
    if (holder === undefined) throw this.#fault('no place', at);
    this.root = holder;
    for (const key of path.slice(0, -1)) {
      const child = childOf(holder, key);
      const inner: Branch | undefined = child && branchOf(child);
      if (inner === undefined) throw this.#fault('no place', at);
      if (holder instanceof Map) holder.set(key, inner);
      else holder[Number(key)] = inner;
      holder = inner;
    }
    return holder;
  }

  #fault(reason: PatchReason, at: 'path' | 'from' = 'path'): PatchFault {
    return new PatchFault(this.#index, reason, at);
  }
}

/** The members or elements of a value; undefined if the value is a scalar. */
function branchOf(value: Tree): Branch | undefined {
  if (isBranch(value)) return value;
  const kind = kindOf(value);
  if (kind === 'object') return membersOf(value);
  return kind === 'array' ? elementsOf(value) : undefined;
}

function isBranch(value: Tree): value is Branch {
  return value instanceof Map || Array.isArray(value);
}

function sizeOfBranch(branch: Branch): number {
  return branch instanceof Map ? branch.size : branch.length;
}

function childOf(holder: Branch, key: string): Tree | undefined {
  if (holder instanceof Map) return holder.get(key);
  const index = arrayIndexOf(key);
  return index === undefined ? undefined : holder[index];
}

/** A parsed value never changes and may be in two places; a value in changeable form may not. */
function copyOf(value: Tree): Tree {
  if (Array.isArray(value)) return value.map(copyOf);
  if (value instanceof Map) return new Map([...value].map(([key, member]) => [key, copyOf(member)]));
  return value;
}

function textOf(value: Tree): string {
  if (Array.isArray(value)) return `[${value.map(textOf).join(',')}]`;
  return value instanceof Map
    ? objectText([...value].map(([key, member]) => [key, textOf(member)]))
    : compactText(value);
}

function sizeOf(value: Tree): JsonSize {
  if (!isBranch(value)) return sizeOfJson(value);
  const inner = (Array.isArray(value) ? value : [...value.values()]).map(sizeOf);
  const keys = Array.isArray(value) ? 0 : [...value.keys()].reduce((sum, key) => sum + bytesOfKey(key), 0);
  return {
    bytes: inner.reduce((sum, { bytes }) => sum + bytes, 2 + keys + Math.max(0, inner.length - 1)),
    values: inner.reduce((sum, { values }) => sum + values, 1),
    levels: inner.reduce((most, { levels }) => Math.max(most, levels), 0) + 1,
  };
}

/** The bytes of a key with its quotes and its colon. */
function bytesOfKey(key: string): number {
  return Buffer.byteLength(JSON.stringify(key)) + 1;
}

/**
 * RFC 6902, 4.6: compares strings by their characters, numbers by value, members in any order. Reads no more than `other`
 * has.
 */
function isEqual(one: Tree, other: JsonNode): boolean {
  const kind = kindOf(other);
  if (kind === 'array') return isEqualArray(one, other);
  if (kind === 'object') return isEqualObject(one, other);
  return !isBranch(one) && isSameScalar(one.tape, one.node, other.tape, other.node);
}

function isEqualArray(one: Tree, other: JsonNode): boolean {
  if (one instanceof Map || (!Array.isArray(one) && kindOf(one) !== 'array')) return false;
  const elements = elementsIn(one);
  for (const wanted of elementsOf(other)) {
    const { value } = elements.next();
    if (value === undefined || !isEqual(value, wanted)) return false;
  }
  return elements.next().done === true;
}

function isEqualObject(one: Tree, other: JsonNode): boolean {
  if (Array.isArray(one) || (!(one instanceof Map) && kindOf(one) !== 'object')) return false;
  const wanted = membersOf(other);
  let count = 0;
  for (const [key, value] of membersIn(one)) {
    const counterpart = wanted.get(key);
    if (counterpart === undefined || !isEqual(value, counterpart)) return false;
    count += 1;
  }
  return count === wanted.size;
}

function* elementsIn(array: JsonNode | Tree[]): Generator<Tree, undefined> {
  if (Array.isArray(array)) {
    yield* array;
    return undefined;
  }
  const { tape } = array;
  for (let node = firstChild(tape, array.node); node !== -1; node = nextChild(tape, node)) yield { tape, node };
  return undefined;
}

function* membersIn(object: JsonNode | Map<string, Tree>): Generator<[string, Tree], undefined> {
  if (object instanceof Map) {
    yield* object;
    return undefined;
  }
  const { tape } = object;
  for (let key = firstChild(tape, object.node); key !== -1; key = nextChild(tape, key)) {
    yield [decodedString(tape, key), { tape, node: key + cellsOfNode }];
  }
  return undefined;
}
