import { type JsonSize, maxDocument, sizeOfJson } from './measure.ts';
import { arrayIndexOf, PatchFault, type PatchOperation, type PatchReason } from './patch-operation.ts';
import {
  type Branch,
  bytesOfKey,
  changeable,
  childOf,
  countOf,
  type Inner,
  isBranch,
  isEqual,
  setChild,
  shared,
  type Tree,
  textOf,
} from './patch-tree.ts';
import type { JsonNode } from './tape.ts';

/** Maximum levels of arrays and objects in a document. */
export const maxPatchedLevels = 100;
/** Maximum size of what a patch adds, moves and copies: 1 KiB could otherwise copy a document a thousand times. */
export const maxMoved = { bytes: 4 * 1_048_576, values: 4 * maxDocument.values } as const;

/**
 * Applies a patch to a document and returns the JSON text of the new document. Values that no operation changes keep
 * their text. Throws PatchFault for the first operation that fails, and before an operation that would make the
 * document larger than `maxDocument` or deeper than `maxPatchedLevels`. It applies all operations or none.
 *
 * A copy costs nothing until one of the two values changes: each of them refers to the same branch.
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
  /** The sizes of parsed values, which never change. A value that is copied or moved again is not counted again. */
  readonly #sizes = new WeakMap<JsonNode, JsonSize>();

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
        this.#add(path, shared(this.#find(operation.from, 'from')));
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

  /** Adds a value, or replaces an existing member. */
  #add(path: readonly string[], value: Tree): void {
    const key = path.at(-1);
    const inner = this.#holderOf(path)?.inner;
    if (key === undefined || inner === undefined || (inner instanceof Map && inner.has(key))) {
      this.#replace(path, value);
      return;
    }
    const comma = countOf(inner) > 0 ? 1 : 0;
    if (inner instanceof Map) {
      this.#grow(path, this.#sizeOf(value), bytesOfKey(key) + comma);
      inner.set(key, value);
      return;
    }
    const place = key === '-' ? inner.length : arrayIndexOf(key);
    if (place === undefined || place > inner.length) throw this.#fault('beyond');
    this.#grow(path, this.#sizeOf(value), comma);
    inner.splice(place, 0, value);
  }

  /** Replaces an existing value. */
  #replace(path: readonly string[], value: Tree): void {
    const former = this.#sizeOf(this.#find(path));
    this.#grow(path, this.#sizeOf(value), -former.bytes, -former.values);
    const key = path.at(-1);
    const inner = this.#holderOf(path)?.inner;
    if (key === undefined || inner === undefined) this.root = value;
    else setChild(inner, key, value);
  }

  #remove(path: readonly string[]): void {
    const { bytes, values } = this.#sizeOf(this.#find(path));
    const key = path.at(-1) ?? '';
    const inner = this.#holderOf(path)?.inner;
    if (inner instanceof Map) inner.delete(key);
    else inner?.splice(Number(key), 1);
    const comma = inner !== undefined && countOf(inner) > 0 ? 1 : 0;
    this.#bytes -= bytes + comma + (inner instanceof Map ? bytesOfKey(key) : 0);
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
    const value = childOf(holder.inner, key);
    if (value === undefined) throw this.#fault('nothing', at);
    return value;
  }

  /**
   * The branch that has the value at a path; undefined for the document itself. No other place refers to it or to the
   * branches above it, so it may change. Their sizes are unknown from now on.
   */
  #holderOf(path: readonly string[], at: 'path' | 'from' = 'path'): Branch | undefined {
    if (path.length === 0) return undefined;
    let holder = changeable(this.root);
    if (holder === undefined) throw this.#fault('no place', at);
    this.root = holder;
    for (const key of path.slice(0, -1)) {
      const child = childOf(holder.inner, key);
      const below: Branch | undefined = child && changeable(child);
      if (below === undefined) throw this.#fault('no place', at);
      setChild(holder.inner, key, below);
      holder = below;
    }
    return holder;
  }

  #sizeOf(value: Tree): JsonSize {
    if (isBranch(value)) {
      value.size ??= this.#countBranch(value.inner);
      return value.size;
    }
    return this.#sizes.getOrInsertComputed(value, (node) => sizeOfJson(node));
  }

  #countBranch(inner: Inner): JsonSize {
    let bytes = '{}'.length + Math.max(0, countOf(inner) - 1);
    let values = 1;
    let levels = 0;
    for (const child of inner.values()) {
      const size = this.#sizeOf(child);
      bytes += size.bytes;
      values += size.values;
      levels = Math.max(levels, size.levels);
    }
    if (inner instanceof Map) for (const key of inner.keys()) bytes += bytesOfKey(key);
    return { bytes, values, levels: levels + 1 };
  }

  #fault(reason: PatchReason, at: 'path' | 'from' = 'path'): PatchFault {
    return new PatchFault(this.#index, reason, at);
  }
}
