import type { JsonSize } from './measure.ts';
import { elementsOf, kindOf, membersOf, objectText } from './members.ts';
import { arrayIndexOf } from './patch-operation.ts';
import { cellsOfNode, firstChild, type JsonNode, nextChild } from './tape.ts';
import { compactText, decodedString, isSameScalar } from './text.ts';

/** A value as it was parsed, or, once an operation went into it, its members or elements. */
export type Tree = JsonNode | Branch;
export type Inner = Map<string, Tree> | Tree[];

/** The members or elements of a value. A copy is a second reference to the same branch. */
export interface Branch {
  readonly inner: Inner;
  /** Whether another place may refer to this branch. Then it must not change: an operation changes a clone of it. */
  isShared: boolean;
  /** Undefined until it is needed, and after a change inside of the branch. */
  size: JsonSize | undefined;
}

/**
 * The branch of a value that may change, a clone of it where another place refers to it too; undefined if the value is a
 * scalar. Values inside of a clone have two places then.
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
 * RFC 6902, 4.6: compares strings by their characters, numbers by value, members in any order. Reads no more than `other`
 * has.
 */
export function isEqual(one: Tree, other: JsonNode): boolean {
  const kind = kindOf(other);
  if (kind === 'array') return isEqualArray(one, other);
  if (kind === 'object') return isEqualObject(one, other);
  return !isBranch(one) && isSameScalar(one.tape, one.node, other.tape, other.node);
}

function isEqualArray(one: Tree, other: JsonNode): boolean {
  if (isBranch(one) ? one.inner instanceof Map : kindOf(one) !== 'array') return false;
  const elements = elementsIn(one);
  for (const wanted of elementsOf(other)) {
    const { value } = elements.next();
    if (value === undefined || !isEqual(value, wanted)) return false;
  }
  return elements.next().done === true;
}

function isEqualObject(one: Tree, other: JsonNode): boolean {
  if (isBranch(one) ? !(one.inner instanceof Map) : kindOf(one) !== 'object') return false;
  const wanted = membersOf(other);
  let count = 0;
  for (const [key, value] of membersIn(one)) {
    const counterpart = wanted.get(key);
    if (counterpart === undefined || !isEqual(value, counterpart)) return false;
    count += 1;
  }
  return count === wanted.size;
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
