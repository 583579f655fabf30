import { emptyContainer, type Tree, textOfTree, treeAt, treeOf } from '../../../recording/rebuild/document-tree.ts';

/** What a MongoDB update did to a document. Values are JSON text. */
export interface DocumentUpdate {
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
export function updatedDocument(before: string, { updated, removed, truncated }: DocumentUpdate): string {
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
