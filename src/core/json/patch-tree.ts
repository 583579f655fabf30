import type { JsonSize } from './measure.ts';
import { elementsOf, kindOf, membersOf, objectText } from './members.ts';
import { arrayIndexOf } from './patch-operation.ts';
import { cellsOfNode, firstChild, type JsonNode, nextChild } from './tape.ts';
import { compactText, decodedString, isSameScalar } from './text.ts';

/** A parsed value, or, once an operation changed its inside, a branch. */
export type Tree = JsonNode | Branch;
export type Inner = Map<string, Tree> | Tree[];

/** The members or elements of a value. A copy is a second reference to the same branch. */
export interface Branch {
  readonly inner: Inner;
  /** Whether another place may refer to this branch. Operations then change a clone of it. */
  isShared: boolean;
  /** Undefined until needed, and after a change inside the branch. */
  size: JsonSize | undefined;
}

/**
 * A branch of the value to change: a clone if another place refers to it, whose children then have two places.
 * Undefined for a scalar.
 */
export function changeable(value: Tree): Branch | undefined {
  if (!isBranch(value)) {
    const kind = kindOf(value);
    if (kind === 'object') return branchOf(membersOf(value));
    return kind === 'array' ? branchOf(elementsOf(value)) : undefined;
  }
  if (!value.isShared) {
    value.size = undefined;
    return value;
  }
  for (const child of value.inner.values()) shared(child);
  return branchOf(value.inner instanceof Map ? new Map(value.inner) : [...value.inner]);
}

function branchOf(inner: Inner): Branch {
  return { inner, isShared: false, size: undefined };
}

/** The value, for a second place. */
export function shared(value: Tree): Tree {
  if (isBranch(value)) value.isShared = true;
  return value;
}

export function isBranch(value: Tree): value is Branch {
  return 'inner' in value;
}

export function countOf(inner: Inner): number {
  return inner instanceof Map ? inner.size : inner.length;
}

export function childOf(inner: Inner, key: string): Tree | undefined {
  if (inner instanceof Map) return inner.get(key);
  const index = arrayIndexOf(key);
  return index === undefined ? undefined : inner[index];
}

/** Replaces a child that exists. */
export function setChild(inner: Inner, key: string, value: Tree): void {
  if (inner instanceof Map) inner.set(key, value);
  else inner[Number(key)] = value;
}

export function textOf(value: Tree): string {
  if (!isBranch(value)) return compactText(value);
  const { inner } = value;
  if (Array.isArray(inner)) return `[${inner.map(textOf).join(',')}]`;
  return objectText(Array.from(inner, ([key, member]) => [key, textOf(member)]));
}

/** The bytes of a key with its quotes and its colon. */
export function bytesOfKey(key: string): number {
  return Buffer.byteLength(JSON.stringify(key)) + 1;
}

/**
 * RFC 6902, 4.6: compares strings by their characters, numbers by value, members in any order. Reads no more than
 * `other` has.
 */
export function isEqual(tree: Tree, node: JsonNode): boolean {
  const kind = kindOf(node);
  if (kind === 'array') return isEqualArray(tree, node);
  if (kind === 'object') return isEqualObject(tree, node);
  return !isBranch(tree) && isSameScalar(tree.tape, tree.node, node.tape, node.node);
}

function isEqualArray(tree: Tree, node: JsonNode): boolean {
  if (isBranch(tree) ? tree.inner instanceof Map : kindOf(tree) !== 'array') return false;
  const elements = elementsIn(tree);
  for (const expected of elementsOf(node)) {
    const { value } = elements.next();
    if (value === undefined || !isEqual(value, expected)) return false;
  }
  return elements.next().done === true;
}

function isEqualObject(tree: Tree, node: JsonNode): boolean {
  if (isBranch(tree) ? !(tree.inner instanceof Map) : kindOf(tree) !== 'object') return false;
  const members = membersOf(node);
  let count = 0;
  for (const [key, value] of membersIn(tree)) {
    const counterpart = members.get(key);
    if (counterpart === undefined || !isEqual(value, counterpart)) return false;
    count += 1;
  }
  return count === members.size;
}

function* elementsIn(array: Tree): Generator<Tree, undefined> {
  if (isBranch(array)) {
    yield* array.inner.values();
    return undefined;
  }
  const { tape } = array;
  for (let node = firstChild(tape, array.node); node !== -1; node = nextChild(tape, node)) yield { tape, node };
  return undefined;
}

function* membersIn(object: Tree): Generator<[string, Tree], undefined> {
  if (isBranch(object)) {
    if (object.inner instanceof Map) yield* object.inner;
    return undefined;
  }
  const { tape } = object;
  for (let key = firstChild(tape, object.node); key !== -1; key = nextChild(tape, key)) {
    yield [decodedString(tape, key), { tape, node: key + cellsOfNode }];
  }
  return undefined;
}
