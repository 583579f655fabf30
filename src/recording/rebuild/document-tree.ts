import { AnnalsError } from '../../core/errors.ts';
import { elementsOf, entriesOf, kindOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { isUnchanged } from '../paths.ts';

/** A mutable value. Documents nest deeper than the call stack, so nothing here is recursive. */
export type Tree = Leaf | Container;

/** A value without children, as JSON text. */
export interface Leaf {
  readonly kind: 'leaf';
  readonly text: string;
}

/** An object or an array. Children of an array are keyed by position, from `0`. */
export interface Container {
  readonly kind: 'object' | 'array';
  readonly children: Map<string, Tree>;
}

export function emptyContainer(kind: Container['kind']): Container {
  return { kind, children: new Map() };
}

/** The tree of a JSON text. */
export function treeOf(text: string): Tree {
  const root = parseJson(text);
  const tree = ownTree(root);
  const open: [Tree, JsonNode][] = [[tree, root]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [container, node] = next;
    if (container.kind === 'leaf') continue;
    const children: Iterable<[string, JsonNode]> =
      container.kind === 'object'
        ? entriesOf(node)
        : elementsOf(node).map((element, index): [string, JsonNode] => [String(index), element]);
    for (const [key, child] of children) {
      const childTree = ownTree(child);
      container.children.set(key, childTree);
      open.push([childTree, child]);
    }
  }
  return tree;
}

/** The value at a path, or undefined. */
export function treeAt(root: Tree | undefined, keys: readonly string[]): Tree | undefined {
  let tree = root;
  for (const key of keys) tree = tree === undefined || tree.kind === 'leaf' ? undefined : tree.children.get(key);
  return tree;
}

function ownTree(node: JsonNode): Tree {
  const kind = kindOf(node);
  return kind === 'object' || kind === 'array' ? emptyContainer(kind) : { kind: 'leaf', text: compactText(node) };
}

/** Maximum characters of a document's JSON text. JavaScript strings have at most 512 Mi minus 24. */
const maxTextLength = 512 * 1024 * 1024 - 24;

/**
 * The JSON text of a tree. An array with holes becomes an object, since their values are unknown. Throws
 * internal_service_error if the text exceeds `maxLength`.
 */
export function textOfTree(root: Tree, maxLength = maxTextLength): string {
  const parts: string[] = [];
  let length = 0;
  const write = (part: string) => {
    length += part.length;
    if (length > maxLength) throw documentTooLarge();
    parts.push(part);
  };
  // A stack of the parts to write.
  const open: (Tree | string)[] = [root];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next === 'string') write(next);
    else if (next.kind === 'leaf') write(next.text);
    else {
      const isArray = next.kind === 'array' && isDense(next);
      const members = isArray
        ? Array.from({ length: next.children.size }, (_none, index) => ['', next.children.get(String(index))] as const)
        : [...next.children].map(([key, child]) => [`${JSON.stringify(key)}:`, child] as const);
      open.push(isArray ? ']' : '}');
      for (const [index, [key, child]] of [...members.entries()].reverse()) {
        if (child !== undefined) open.push(child);
        open.push(index === 0 ? key : `,${key}`);
      }
      open.push(isArray ? '[' : '{');
    }
  }
  return parts.join('');
}

/** A document can be larger than any of its changes, if thousands of them each added to it. */
export function documentTooLarge(): AnnalsError {
  return new AnnalsError(
    'internal_service_error',
    'The document is too large: Annals cannot rebuild it. Each of its changes is in the list of changes.',
  );
}

/** Whether an array has no holes. */
export function isDense({ children }: Container): boolean {
  for (let index = 0; index < children.size; index++) if (!children.has(String(index))) return false;
  return true;
}

/** Whether a tree equals a JSON text: numbers by decimal value, object keys in any order. */
export function hasValue(tree: Tree, text: string): boolean {
  if (tree.kind === 'leaf' && tree.text === text) return true;
  return isUnchanged(parseJson(textOfTree(tree)), parseJson(text));
}
