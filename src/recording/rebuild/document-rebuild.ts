import { applyEntry, type DocumentState, nothingKnown } from './apply-entry.ts';
import { type Container, emptyContainer, type Tree, textOfTree, treeOf } from './document-tree.ts';
import { changesOf, isAnchor, type RebuildEntry, type Step } from './entry-changes.ts';

export interface RebuiltDocument {
  exists: boolean;
  /** Whether the document is exactly as written, with every value. */
  complete: boolean;
  /** JSON text; undefined if the document does not exist. */
  document: string | undefined;
}

/** The state of a rebuild. */
export interface RebuildState extends DocumentState {
  /** Whether there was an anchor: an entry from which the document is known. */
  isAnchored: boolean;
  /** Whether there was any entry, before or after the point in time. */
  hasEntries: boolean;
  /** The paths touched by entries, while there is no anchor. */
  touched: TouchedPaths;
}

/** Rebuilds a document entry by entry (contract 4). */
export class DocumentRebuild {
  #state: RebuildState;

  /** May modify `state`. */
  constructor(state?: RebuildState) {
    this.#state = state ?? { ...nothingKnown, isAnchored: false, hasEntries: false, touched: new TouchedPaths() };
  }

  get state(): RebuildState {
    return this.#state;
  }

  get result(): RebuiltDocument {
    const { exists, complete, document = emptyContainer('object') } = this.#state;
    return { exists, complete, document: exists ? textOfTree(document) : undefined };
  }

  /** Adds the next entry up to the point in time. */
  add(entry: RebuildEntry): void {
    const changes = changesOf(entry);
    const isAnchored = this.#state.isAnchored || isAnchor(entry);
    const { touched } = this.#state;
    if (!isAnchored) for (const { keys } of changes.values) touched.add(keys);
    this.#state = { ...applyEntry(this.#state, changes), isAnchored, hasEntries: true, touched };
  }

  /**
   * Adds the next entry after the point in time: an untouched path takes the `before` of the first later entry that
   * touches it. Returns whether further entries can add information.
   */
  addLater(entry: RebuildEntry): boolean {
    const { isAnchored, hasEntries, touched } = this.#state;
    if (isAnchored) return false;
    if (entry.type === 'create') {
      if (!hasEntries) this.#state = { ...this.#state, document: undefined, exists: false };
      // A create has no information about the document before it.
      return false;
    }
    const changes = changesOf(entry);
    let { document } = this.#state;
    for (const { keys, before } of changes.values.filter((value) => !touched.meets(value.keys))) {
      touched.add(keys);
      if (before !== undefined) document = withValue(document, keys, before, changes.root);
    }
    this.#state = { ...this.#state, document, hasEntries: true };
    // Entries after it are about another document.
    return entry.type !== 'delete' && !changes.isWhole;
  }
}

/** Maximum entries after the point in time that are read for values before it. */
export const maxLaterEntries = 1_000;

/**
 * Rebuilds a document at a point in time (contract 4). `until`: its entries up to then, oldest first, from the newest
 * anchor or all. `later`: the first `maxLaterEntries` after it, for an `until` without anchor. Throws if one is not
 * JSON.
 *
 * @example
 * rebuildDocument([{ type: 'create', paths: '{"a":{"after":1.10}}', marks: null, isMarked: true }], []).document; // '{"a":1.10}'
 */
export function rebuildDocument(until: readonly RebuildEntry[], later: readonly RebuildEntry[]): RebuiltDocument {
  const rebuild = new DocumentRebuild();
  for (const entry of until.slice(Math.max(0, until.findLastIndex(isAnchor)))) rebuild.add(entry);
  for (const entry of later.slice(0, maxLaterEntries)) if (!rebuild.addLater(entry)) break;
  return rebuild.result;
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

/** A set of paths that may contain each other. */
export class TouchedPaths {
  readonly #root = untouched();

  add(keys: readonly string[]): void {
    let path = this.#root;
    for (const key of keys) path = path.below.getOrInsertComputed(key, untouched);
    path.isEnd = true;
  }

  /** The keys of each path that is not below a shorter one. */
  get all(): string[][] {
    const result: string[][] = [];
    const open: { path: TouchedPath; keys: string[] }[] = [{ path: this.#root, keys: [] }];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const { path, keys } = next;
      if (path.isEnd) result.push(keys);
      else for (const [key, below] of path.below) open.push({ path: below, keys: [...keys, key] });
    }
    return result;
  }

  /** Whether the path, an ancestor or a descendant was added. */
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

function untouched(): TouchedPath {
  return { isEnd: false, below: new Map() };
}
