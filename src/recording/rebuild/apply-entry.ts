import { type Container, emptyContainer, hasValue, isDense, type Tree, treeAt, treeOf } from './document-tree.ts';
import { type ChangedValue, type EntryChanges, hasOnlyAfter, type Step } from './entry-changes.ts';

/** A document at a point in time, as far as its entries tell. */
export interface DocumentState {
  /** Undefined if it does not exist or is unknown. */
  document: Tree | undefined;
  exists: boolean;
  /** Whether the document is exactly as written. */
  complete: boolean;
}

/** The state before a document's first entry. */
export const nothingKnown: DocumentState = { document: undefined, exists: true, complete: false };

/** Applies an entry. May modify the trees of `state`. */
export function applyEntry(state: DocumentState, changes: EntryChanges): DocumentState {
  const { type, values, isWhole } = changes;
  if (type === 'delete') return { document: undefined, exists: false, complete: true };
  if (type === 'create' || (isWhole && values.length > 0 && values.every(hasOnlyAfter))) return built(changes);
  // The document after the change is unknown.
  if (isWhole) return { ...state, exists: true, complete: false };
  const edit = new Edit(state.document, changes);
  edit.update();
  return { document: edit.document, exists: true, complete: state.complete && state.exists && edit.isCertain };
}

/** The document of a create, or of an update with the whole document. */
function built(changes: EntryChanges): DocumentState {
  if (changes.values.length === 0) return { ...nothingKnown };
  const edit = new Edit(undefined, changes);
  edit.build();
  return { document: edit.document, exists: true, complete: edit.isCertain };
}

/** Applies one entry's changes to a tree. */
class Edit {
  document: Tree | undefined;
  /** Whether the document matched the entry, so that nothing was guessed. */
  isCertain = true;
  readonly #changes: EntryChanges;
  readonly #arrays = new Set<Container>();

  constructor(document: Tree | undefined, changes: EntryChanges) {
    this.document = document;
    this.#changes = changes;
  }

  build(): void {
    const { values, isMarked } = this.#changes;
    const [only] = values;
    // Without marks, the path "" may be the document or its key "".
    if (!isMarked && only?.keys.length === 0) this.isCertain = false;
    for (const value of values) this.#set(value);
    this.#checkArrays();
  }

  update(): void {
    const { values, kept, wasEmpty, isMarked } = this.#changes;
    if (!isMarked && !this.#hadBothSides()) this.isCertain = false;
    const [only] = values;
    if (only?.keys.length === 0) {
      if (!isMarked) this.isCertain = false;
      if (only.before === undefined || this.document === undefined || !hasValue(this.document, only.before)) {
        this.isCertain = false;
      }
      this.document = only.after === undefined ? undefined : treeOf(only.after);
      return;
    }
    const emptied = new Set(kept.map((keys) => this.#containerAt(keys)));
    for (const keys of wasEmpty) if (this.#containerAt(keys)?.children.size !== 0) this.isCertain = false;
    const removals = values.filter(({ after }) => after === undefined).map((value) => this.#remove(value));
    for (const value of values) if (value.after !== undefined) this.#replace(value);
    for (const ancestors of removals) this.#prune(ancestors, emptied);
    // A scalar, or a container that is not empty now, contradicts the entry.
    for (const container of emptied) if (container?.children.size !== 0) this.isCertain = false;
    this.#checkArrays();
  }

  /** Whether the entry has both `before` and `after` values. */
  #hadBothSides(): boolean {
    const { values } = this.#changes;
    return values.some(({ before }) => before !== undefined) && values.some(({ after }) => after !== undefined);
  }

  /** Removes a value. Returns its ancestors with their keys, from the document down. */
  #remove({ keys, before }: ChangedValue): [Container, string][] {
    const ancestors: [Container, string][] = [];
    let tree = this.document;
    for (const key of keys) {
      if (tree === undefined || tree.kind === 'leaf') break;
      ancestors.push([tree, key]);
      if (tree.kind === 'array') this.#arrays.add(tree);
      tree = tree.children.get(key);
    }
    if (tree === undefined || ancestors.length < keys.length || before === undefined || !hasValue(tree, before)) {
      this.isCertain = false;
    }
    const last = ancestors.at(-1);
    if (last !== undefined && ancestors.length === keys.length) last[0].children.delete(last[1]);
    return ancestors;
  }

  /** Removes the ancestors that a removal left empty, except `kept`. */
  #prune(ancestors: readonly [Container, string][], kept: ReadonlySet<Container | undefined>): void {
    for (let index = ancestors.length - 1; index > 0; index--) {
      const [container] = ancestors[index] ?? [];
      const [above, key] = ancestors[index - 1] ?? [];
      if (container === undefined || above === undefined || key === undefined) return;
      if (container.children.size > 0 || kept.has(container)) return;
      if (!this.#changes.isMarked) this.isCertain = false;
      if (above.children.get(key) === container) above.children.delete(key);
    }
  }

  #replace(value: ChangedValue): void {
    const stood = treeAt(this.document, value.keys);
    if ((stood === undefined) !== (value.before === undefined)) this.isCertain = false;
    else if (stood !== undefined && value.before !== undefined && !hasValue(stood, value.before))
      this.isCertain = false;
    this.#set(value);
  }

  /** Sets a value, creating missing containers. */
  #set({ keys, after }: ChangedValue): void {
    if (after === undefined) {
      this.isCertain = false;
      return;
    }
    const last = keys.at(-1);
    if (last === undefined) {
      this.document = treeOf(after);
      return;
    }
    let step = this.#changes.root;
    let container = this.#containerFor(step, this.document);
    this.document = container;
    for (const key of keys.slice(0, -1)) {
      step = step.steps.get(key) ?? step;
      const next: Container = this.#containerFor(step, container.children.get(key));
      container.children.set(key, next);
      container = next;
    }
    container.children.set(last, treeOf(after));
  }

  /** The existing container, or a new one of the kind that the path needs. */
  #containerFor(step: Step, stood: Tree | undefined): Container {
    const isRoot = step === this.#changes.root;
    const { isMarked } = this.#changes;
    if (stood !== undefined && stood.kind !== 'leaf') {
      const isOther = stood.kind !== step.kind && (isMarked || step.kind === 'object' || isRoot);
      if (isOther) this.isCertain = false;
      if (stood.kind === 'array') this.#arrays.add(stood);
      return stood;
    }
    if (stood !== undefined) this.isCertain = false;
    // Without marks, an object with keys such as "0" is indistinguishable.
    if (!isMarked && step.kind === 'array') this.isCertain = false;
    const container = emptyContainer(step.kind);
    if (container.kind === 'array') this.#arrays.add(container);
    return container;
  }

  #containerAt(keys: readonly string[]): Container | undefined {
    const tree = treeAt(this.document, keys);
    return tree === undefined || tree.kind === 'leaf' ? undefined : tree;
  }

  #checkArrays(): void {
    for (const array of this.#arrays) if (!isDense(array)) this.isCertain = false;
  }
}
