import { threaded } from '../../core/fairness/threads.ts';
import type { ChangeType } from '../change.ts';
import { DocumentRebuild, type RebuildState, type RebuiltDocument, TouchedPaths } from './document-rebuild.ts';
import { type Container, isDense, type Tree, textOfTree, treeAt, treeOf } from './document-tree.ts';
import { isAnchor, type RebuildEntry } from './entry-changes.ts';

/** A few entries of one document, oldest first, in columns. */
export interface RebuildChunk {
  readonly types: readonly ChangeType[];
  readonly paths: readonly string[];
  readonly marks: readonly (string | null)[];
  readonly isMarked: readonly boolean[];
}

/** The state of a rebuild between chunks. Plain data, so that it can be passed to a worker thread. */
export interface PartialRebuild extends Omit<RebuildState, 'document' | 'touched'> {
  /** JSON text. */
  readonly document: string | undefined;
  /** The keys of arrays with holes, which the text has as objects. */
  readonly sparse: readonly (readonly string[])[];
  readonly touched: readonly (readonly string[])[];
}

/** Before the first chunk. */
export const nothingRebuilt: PartialRebuild = plainState(new DocumentRebuild().state);

/**
 * Rebuilds a document in chunks of entries, if it has too many or too long ones: those up to the point in time, from
 * the newest anchor or all. Long chunks run in a worker thread.
 *
 * @example
 * let state = nothingRebuilt;
 * for await (const chunk of chunks) state = await continueRebuild(state, chunk);
 * rebuiltDocument(state).document; // '{"a":1.10}'
 */
export const continueRebuild = threaded(
  import.meta.url,
  'continueRebuild',
  (state: PartialRebuild, chunk: RebuildChunk): PartialRebuild => {
    const rebuild = new DocumentRebuild(stateOf(state));
    for (const entry of entriesOf(chunk)) rebuild.add(entry);
    return plainState(rebuild.state);
  },
);

/**
 * Adds the entries after the point in time, if there is no anchor. `hasMore`: whether further entries can add to it.
 */
export const rebuildFromLater = threaded(
  import.meta.url,
  'rebuildFromLater',
  (state: PartialRebuild, chunk: RebuildChunk): { state: PartialRebuild; hasMore: boolean } => {
    const rebuild = new DocumentRebuild(stateOf(state));
    let hasMore = true;
    for (const entry of entriesOf(chunk)) {
      hasMore = rebuild.addLater(entry);
      if (!hasMore) break;
    }
    return { state: plainState(rebuild.state), hasMore };
  },
);

/** Whether the one entry of a chunk is an anchor. */
export const isAnchorChunk = threaded(import.meta.url, 'isAnchorChunk', (chunk: RebuildChunk): boolean =>
  entriesOf(chunk).every(isAnchor),
);

/** The document after the last chunk. */
export function rebuiltDocument({ document = '{}', exists, complete }: PartialRebuild): RebuiltDocument {
  return { exists, complete, document: exists ? document : undefined };
}

function entriesOf({ types, paths, marks, isMarked }: RebuildChunk): RebuildEntry[] {
  return types.map((type, index) => ({
    type,
    paths: paths[index] ?? '{}',
    marks: marks[index] ?? null,
    isMarked: isMarked[index] ?? false,
  }));
}

function plainState({ document, touched, ...rest }: RebuildState): PartialRebuild {
  return {
    ...rest,
    document: document === undefined ? undefined : textOfTree(document),
    sparse: document === undefined ? [] : sparseArrays(document),
    touched: rest.isAnchored ? [] : touched.all,
  };
}

function stateOf({ document, sparse, touched, ...rest }: PartialRebuild): RebuildState {
  const paths = new TouchedPaths();
  for (const keys of touched) paths.add(keys);
  let tree = document === undefined ? undefined : treeOf(document);
  for (const keys of sparse) tree = withArray(tree, keys);
  return { ...rest, document: tree, touched: paths };
}

/** The keys of each array with holes, outer arrays first. */
function sparseArrays(root: Tree): string[][] {
  interface TreeNode {
    readonly tree: Tree;
    readonly key: string;
    readonly above: TreeNode | undefined;
  }
  const paths: string[][] = [];
  const open: TreeNode[] = [{ tree: root, key: '', above: undefined }];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const { tree } = node;
    if (tree.kind === 'leaf') continue;
    if (tree.kind === 'array' && !isDense(tree)) {
      const keys: string[] = [];
      for (let step: TreeNode = node; step.above !== undefined; step = step.above) keys.push(step.key);
      paths.push(keys.reverse());
    }
    for (const [key, child] of tree.children) open.push({ tree: child, key, above: node });
  }
  return paths;
}

/** Converts the object that represented an array with holes back to an array. */
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
