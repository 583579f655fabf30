import { applyPatch, type Operation } from 'rfc6902';
import { AnnalsError } from '../errors.ts';
import { isSameDecimal } from '../recording/decimal.ts';
import { parseJson } from '../recording/json.ts';
import type { JsonNode } from '../recording/json-tape.ts';
import { sourceText } from '../recording/json-text.ts';
import { elementsOf, kindOf, membersOf, stringOf } from './json-members.ts';

/**
 * A JSON value as the patch library may handle it without changing it: a leaf is its own source text, so that numbers
 * keep every digit.
 */
type Tree = string | Tree[] | { [key: string]: Tree };

const mostOperations = 1_000;
/** What a patch may put anywhere in all, in characters: copying a document into itself doubles it each time. */
const mostHandled = 4 * 1_048_576;
const deepest = 100;

/**
 * Applies a patch (RFC 6902) to a document; both are JSON texts. Throws conflict_resource where a `test` fails, since
 * then the document is not what the client believes, and validation_violation for everything else that is wrong with
 * the patch, a target that is not there among it. Nothing is applied unless all is.
 *
 * The library moves the values. What it leaves to its caller is done here first: pointers are checked strictly (it
 * takes `01` and `length` for places in an array, and what objects inherit for members) and `test` is done in linear
 * time.
 */
export function patchDocument(document: string, patch: string): string {
  const operations = readOperations(patch);
  const holder = { document: treeOf(parseJson(document)) };
  let handled = 0;
  const take = (tree: Tree, path: string, index: number): Tree => {
    handled += sizeOf(tree);
    if (handled > mostHandled) throw invalid(index, 'the patch moves or copies more than 4 MiB');
    if (tokensOf(path).length + depthOf(tree) > deepest) throw invalid(index, `nested deeper than ${deepest} levels`);
    return tree;
  };
  for (const [index, operation] of operations.entries()) {
    const { op, path, from, value } = operation;
    switch (op) {
      case 'test':
        if (!isEqual(valueAt(holder, path, index), value)) throw testFailed(index, path);
        break;
      case 'remove':
        if (path === '') throw invalid(index, 'the document itself stays');
        apply(holder, { op, path }, index);
        break;
      case 'add':
      case 'replace':
        apply(holder, { op, path, value: take(value, path, index) }, index);
        break;
      case 'copy':
        apply(holder, { op: 'add', path, value: take(valueAt(holder, from, index), path, index) }, index);
        break;
      case 'move': {
        if (path.startsWith(`${from}/`)) throw invalid(index, 'a value cannot move into itself');
        const moved = take(valueAt(holder, from, index), path, index);
        // RFC 6902, 4.4: the target is looked for once the value is gone from where it was.
        if (path !== from) {
          apply(holder, { op: 'remove', path: from }, index);
          apply(holder, { op: 'add', path, value: moved }, index);
        }
      }
    }
  }
  return textOf(holder.document);
}

/** One operation by the library, at a place that is known to be one. */
function apply(holder: { document: Tree }, operation: Operation, index: number): void {
  locate(holder, operation.path, operation.op, index);
  // A replaced root is a member of the holder like others.
  const keys = ['', 'document', ...tokensOf(operation.path)];
  const path = keys.map((key) => key.replaceAll('~', '~0').replaceAll('/', '~1')).join('/');
  const [failure] = applyPatch(holder, [{ ...operation, path }]);
  if (failure !== null) throw invalid(index, `there is no place at ${operation.path}`);
}

function valueAt(holder: { document: Tree }, pointer: string, index: number): Tree {
  return locate(holder, pointer, 'test', index) ?? '';
}

interface PatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: string;
  readonly from: string;
  readonly value: Tree;
}

function readOperations(patch: string): PatchOperation[] {
  const list = parseJson(patch);
  if (kindOf(list) !== 'array') throw new AnnalsError('validation_violation', 'A patch is an array of operations.');
  const elements = elementsOf(list);
  if (elements.length > mostOperations) {
    throw new AnnalsError('validation_violation', `A patch has at most ${mostOperations} operations.`);
  }
  return elements.map(readOperation);
}

const operationNames = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const;

function readOperation(node: JsonNode, index: number): PatchOperation {
  const members = kindOf(node) === 'object' ? membersOf(node) : new Map<string, JsonNode>();
  const given = stringOf(members.get('op'));
  const op = operationNames.find((name) => name === given);
  if (op === undefined) throw invalid(index, `op must be one of ${operationNames.join(', ')}`, 'op');
  const value = members.get('value');
  const needsValue = op === 'add' || op === 'replace' || op === 'test';
  if (needsValue && value === undefined) throw invalid(index, `${op} needs a value`, 'value');
  const from = op === 'move' || op === 'copy' ? pointerOf(members.get('from'), index, 'from') : '';
  return {
    op,
    path: pointerOf(members.get('path'), index, 'path'),
    from,
    value: needsValue && value !== undefined ? treeOf(value) : '',
  };
}

/** A JSON Pointer (RFC 6901). */
function pointerOf(node: JsonNode | undefined, index: number, field: string): string {
  const pointer = stringOf(node);
  if (pointer !== undefined && /^(?:\/(?:[^~/]|~[01])*)*$/s.test(pointer)) return pointer;
  throw invalid(index, `${field} must be a JSON Pointer`, field);
}

/** What a pointer leads to, undefined where an `add` makes it. Throws where the operation finds no place. */
function locate(holder: { document: Tree }, pointer: string, op: string, index: number): Tree | undefined {
  const keys = tokensOf(pointer);
  const last = keys.pop();
  if (last === undefined) return holder.document;
  let parent: Tree | undefined = holder.document;
  for (const key of keys) parent = childOf(parent, key);
  if (parent === undefined || typeof parent === 'string') throw invalid(index, `there is no place at ${pointer}`);
  const value = childOf(parent, last);
  const mayBeNew = op === 'add' && (!Array.isArray(parent) || last === '-' || last === String(parent.length));
  if (value === undefined && !mayBeNew) throw invalid(index, `there is nothing at ${pointer}`);
  return value;
}

function childOf(parent: Tree | undefined, key: string): Tree | undefined {
  if (parent === undefined || typeof parent === 'string') return undefined;
  if (Array.isArray(parent)) return /^(?:0|[1-9][0-9]*)$/.test(key) ? parent[Number(key)] : undefined;
  return Object.hasOwn(parent, key) ? parent[key] : undefined;
}

function tokensOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((token) => safeKey(token.replaceAll('~1', '/').replaceAll('~0', '~')));
}

/** Names that the library steps over, because they mean something to JavaScript, get a mark while it is at work. */
function safeKey(key: string): string {
  return /^(?:__proto__|constructor|prototype)\^*$/.test(key) ? `${key}^` : key;
}

function originalKey(key: string): string {
  return /^(?:__proto__|constructor|prototype)\^+$/.test(key) ? key.slice(0, -1) : key;
}

function treeOf(node: JsonNode): Tree {
  const kind = kindOf(node);
  if (kind === 'array') return elementsOf(node).map(treeOf);
  if (kind !== 'object') return sourceText(node);
  const tree: { [key: string]: Tree } = {};
  for (const [key, value] of membersOf(node)) tree[safeKey(key)] = treeOf(value);
  return tree;
}

function textOf(tree: Tree): string {
  if (typeof tree === 'string') return tree;
  if (Array.isArray(tree)) return `[${tree.map(textOf).join(',')}]`;
  const members = Object.entries(tree).map(([key, value]) => `${JSON.stringify(originalKey(key))}:${textOf(value)}`);
  return `{${members.join(',')}}`;
}

function sizeOf(tree: Tree): number {
  if (typeof tree === 'string') return tree.length;
  return Object.entries(tree).reduce((size, [key, value]) => size + key.length + sizeOf(value), 2);
}

function depthOf(tree: Tree): number {
  if (typeof tree === 'string') return 0;
  return 1 + Object.values(tree).reduce((depth, value) => Math.max(depth, depthOf(value)), 0);
}

/** RFC 6902, 4.6: strings by their characters, numbers by value, members in any order. */
function isEqual(one: Tree, other: Tree): boolean {
  if (typeof one === 'string' || typeof other === 'string') {
    return typeof one === 'string' && typeof other === 'string' && isEqualLeaf(one, other);
  }
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const entries = Object.entries(one);
  if (entries.length !== Object.keys(other).length) return false;
  return entries.every(([member, value]) => {
    const counterpart = (other as { [name: string]: Tree })[member];
    return Object.hasOwn(other, member) && counterpart !== undefined && isEqual(value, counterpart);
  });
}

function isEqualLeaf(one: string, other: string): boolean {
  if (one === other) return true;
  if (one.startsWith('"') && other.startsWith('"')) return JSON.parse(one) === JSON.parse(other);
  return /^[-0-9]/.test(one) && /^[-0-9]/.test(other) && isSameDecimal(one, other);
}

function invalid(index: number, message: string, field?: string): AnnalsError {
  return new AnnalsError('validation_violation', 'The patch cannot be applied.', {
    details: [{ field: field === undefined ? String(index) : `${index}.${field}`, message }],
  });
}

function testFailed(index: number, path: string): AnnalsError {
  return new AnnalsError('conflict_resource', 'The document is not what the patch expects.', {
    details: [{ field: String(index), message: `the test of ${path} failed` }],
  });
}
