import { applyEntry, type DocumentState, nothingKnown } from './apply-entry.ts';
import { type Container, emptyContainer, type Tree, textOfTree, treeOf } from './document-tree.ts';
import { changesOf, type EntryChanges, isAnchor, type RebuildEntry, type Step } from './entry-changes.ts';

export interface RebuiltDocument {
  exists: boolean;
  /** Whether the document is exactly what was written, with every value. */
  complete: boolean;
  /** JSON text; undefined where the document does not exist. */
  document: string | undefined;
}

/** How many entries after the moment are looked at for values from before it. */
export const maxLaterEntries = 1_000;

/**
 * Rebuilds a document as it was at a moment (contract 4). `until` has its entries up to that moment, oldest first, at least from the
 * newest anchor on, or all where there is no anchor. `later` has those after it, oldest first; only where `until` has no anchor they
 * matter, and of them the first `maxLaterEntries`. Throws where an entry is no JSON.
 *
 * @example
 * rebuildDocument([{ type: 'create', paths: '{"a":{"after":1.10}}', marks: null, isMarked: true }], []).document; // '{"a":1.10}'
 */
export function rebuildDocument(until: readonly RebuildEntry[], later: readonly RebuildEntry[]): RebuiltDocument {
  const newestAnchor = until.findLastIndex(isAnchor);
  const isAnchored = newestAnchor !== -1;
  const changes = (isAnchored ? until.slice(newestAnchor) : until).map(changesOf);
  let state: DocumentState = { ...nothingKnown };
  for (const change of changes) state = applyEntry(state, change);
  if (!isAnchored) state = withValuesFromLater(state, changes, later.slice(0, maxLaterEntries));
  const { exists, complete, document = emptyContainer('object') } = state;
  return { exists, complete: complete && isAnchored, document: exists ? textOfTree(document) : undefined };
}

/** A path that no entry has touched takes the `before` of the first later entry that touches it. */
function withValuesFromLater(
  state: DocumentState,
  until: readonly EntryChanges[],
  later: readonly RebuildEntry[],
): DocumentState {
  const [next] = later;
  if (until.length === 0 && next?.type === 'create') return { document: undefined, exists: false, complete: false };
  const touched = new TouchedPaths();
  for (const { values } of until) for (const { keys } of values) touched.add(keys);
  let { document } = state;
  for (const entry of later) {
    // What a create has says nothing about the document before it.
    if (entry.type === 'create') break;
    const changes = changesOf(entry);
    const found = changes.values.filter(({ keys }) => !touched.meets(keys));
    for (const { keys, before } of found) {
      touched.add(keys);
      if (before !== undefined) document = withValue(document, keys, before, changes.root);
    }
    if (entry.type === 'delete' || changes.isWhole) break;
  }
  return { ...state, document };
}

function withValue(document: Tree | undefined, keys: readonly string[], text: string, root: Step): Tree {
  const last = keys.at(-1);
  if (last === undefined) return document ?? treeOf(text);
  const top: Container = document === undefined || document.kind === 'leaf' ? emptyContainer('object') : document;
  let container = top;
  let step: Step | undefined = root;
  for (const key of keys.slice(0, -1)) {
    step = step?.steps.get(key);
    const stood = container.children.get(key);
    const next: Container =
      stood === undefined || stood.kind === 'leaf' ? emptyContainer(step?.kind ?? 'object') : stood;
    container.children.set(key, next);
    container = next;
  }
  container.children.set(last, treeOf(text));
  return top;
}

/** Paths of which one may lead through another. */
class TouchedPaths {
  readonly #root: TouchedPath = { isEnd: false, below: new Map() };

  add(keys: readonly string[]): void {
    let path = this.#root;
    for (const key of keys) {
      let next = path.below.get(key);
      if (next === undefined) {
        next = { isEnd: false, below: new Map() };
        path.below.set(key, next);
      }
      path = next;
    }
    path.isEnd = true;
  }

  /** Whether the path, one above it or one below it was added. */
  meets(keys: readonly string[]): boolean {
    let path: TouchedPath | undefined = this.#root;
    for (const key of keys) {
      if (path.isEnd) return true;
      path = path.below.get(key);
      if (path === undefined) return false;
    }
    return true;
  }
}

interface TouchedPath {
  isEnd: boolean;
  below: Map<string, TouchedPath>;
}
