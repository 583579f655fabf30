import { threaded } from '../../core/concurrency/threaded.ts';
import type { ChangeType } from '../change.ts';
import { DocumentRebuild, type RebuildState, type RebuiltDocument } from './document-rebuild.ts';
import { type Container, isDense, type Tree, textOfTree, treeAt, treeOf } from './document-tree.ts';
import { isAnchor, type RebuildEntry } from './entry-changes.ts';
import { TouchedPaths } from './touched-paths.ts';

/** A few entries of one document, oldest first, in columns. */
export interface RebuildPortion {
  readonly types: readonly ChangeType[];
  readonly paths: readonly string[];
  readonly marks: readonly (string | null)[];
  readonly isMarked: readonly boolean[];
}

/** What is known of a document between two portions. It is plain data, so that it can go to a worker thread and back. */
export interface PartlyRebuilt extends Omit<RebuildState, 'document' | 'touched'> {
  /** JSON text. */
  readonly document: string | undefined;
  /** The arrays of the document that have holes; the text has them as objects. Keys lead to each. */
  readonly sparse: readonly (readonly string[])[];
  readonly touched: readonly (readonly string[])[];
}

/** Before the first portion. */
export const nothingRebuilt: PartlyRebuilt = plainState(new DocumentRebuild().state);

/**
 * Goes on with the rebuilding of a document that has too many entries, or too long ones, to be rebuilt at once: the
 * entries up to the moment, at least from the newest anchor on. Long portions are worked on in a worker thread.
 *
 * @example
 * let known = nothingRebuilt;
 * for await (const portion of portions) known = await rebuildFurther(known, portion);
 * rebuiltDocument(known).document; // '{"a":1.10}'
 */
export const rebuildFurther = threaded(
  import.meta.url,
  'rebuildFurther',
  (known: PartlyRebuilt, portion: RebuildPortion): PartlyRebuilt => {
    const rebuild = new DocumentRebuild(stateOf(known));
    for (const entry of entriesOf(portion)) rebuild.add(entry);
    return plainState(rebuild.state);
  },
);

/** Adds what the entries after the moment tell, where there is no anchor. `mayGoOn`: whether entries after these can tell more. */
export const rebuildFromLater = threaded(
  import.meta.url,
  'rebuildFromLater',
  (known: PartlyRebuilt, portion: RebuildPortion): { known: PartlyRebuilt; mayGoOn: boolean } => {
    const rebuild = new DocumentRebuild(stateOf(known));
    let mayGoOn = true;
    for (const entry of entriesOf(portion)) {
      mayGoOn = rebuild.addLater(entry);
      if (!mayGoOn) break;
    }
    return { known: plainState(rebuild.state), mayGoOn };
  },
);

/** Whether the one entry of a portion is an anchor. */
export const isAnchorPortion = threaded(import.meta.url, 'isAnchorPortion', (portion: RebuildPortion): boolean =>
  entriesOf(portion).every(isAnchor),
);

/** The document after the last portion. */
export function rebuiltDocument({ document = '{}', exists, complete }: PartlyRebuilt): RebuiltDocument {
  return { exists, complete, document: exists ? document : undefined };
}

function entriesOf({ types, paths, marks, isMarked }: RebuildPortion): RebuildEntry[] {
  return types.map((type, index) => ({
    type,
    paths: paths[index] ?? '{}',
    marks: marks[index] ?? null,
    isMarked: isMarked[index] ?? false,
  }));
}

function plainState({ document, touched, ...rest }: RebuildState): PartlyRebuilt {
  return {
    ...rest,
    document: document === undefined ? undefined : textOfTree(document),
    sparse: document === undefined ? [] : sparseArrays(document),
    touched: rest.isAnchored ? [] : touched.all,
  };
}

function stateOf({ document, sparse, touched, ...rest }: PartlyRebuilt): RebuildState {
  const paths = new TouchedPaths();
  for (const keys of touched) paths.add(keys);
  let tree = document === undefined ? undefined : treeOf(document);
  for (const keys of sparse) tree = withArray(tree, keys);
  return { ...rest, document: tree, touched: paths };
}

/** The keys that lead to each array with holes, an outer one before those in it. */
function sparseArrays(root: Tree): string[][] {
  interface Place {
    readonly tree: Tree;
    readonly key: string;
    readonly above: Place | undefined;
  }
  const found: string[][] = [];
  const open: Place[] = [{ tree: root, key: '', above: undefined }];
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const { tree } = place;
    if (tree.kind === 'leaf') continue;
    if (tree.kind === 'array' && !isDense(tree)) {
      const keys: string[] = [];
      for (let one: Place = place; one.above !== undefined; one = one.above) keys.push(one.key);
      found.push(keys.reverse());
    }
    for (const [key, child] of tree.children) open.push({ tree: child, key, above: place });
  }
  return found;
}

/** Makes the object that the text had for an array an array again. */
function withArray(root: Tree | undefined, keys: readonly string[]): Tree | undefined {
  const last = keys.at(-1);
  if (last === undefined) return asArray(root);
  const container = treeAt(root, keys.slice(0, -1));
  if (container === undefined || container.kind === 'leaf') return root;
  const array = asArray(container.children.get(last));
  if (array !== undefined) container.children.set(last, array);
  return root;
}

function asArray(tree: Tree | undefined): Tree | undefined {
  if (tree === undefined || tree.kind === 'leaf') return tree;
  const array: Container = { kind: 'array', children: tree.children };
  return array;
}
