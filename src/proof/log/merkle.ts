import { hash } from 'node:crypto';
import { decodeBase64 } from './note.ts';

/** A proof that can be kept as a file, as C2SP's tlog-proof has it. */
interface InclusionProof {
  /** What the leaf is made of: not part of the proof, and not to be trusted before the leaf is hashed. */
  readonly extra: Buffer | undefined;
  readonly index: number;
  readonly hashes: readonly Buffer[];
  /** The note of the checkpoint, as the log gave it. */
  readonly checkpoint: string;
}

const firstLine = 'c2sp.org/tlog-proof@v1';

export function formatInclusionProof({ extra, index, hashes, checkpoint }: InclusionProof): string {
  return [
    firstLine,
    ...(extra === undefined ? [] : [`extra ${extra.toString('base64')}`]),
    `index ${index}`,
    ...hashes.map((sibling) => sibling.toString('base64')),
    '',
    checkpoint,
  ].join('\n');
}

/** What the file of a proof says; undefined for anything else. Nothing of it is verified. */
export function parseInclusionProof(text: string): InclusionProof | undefined {
  const end = text.indexOf('\n\n');
  const [first, ...lines] = text.slice(0, Math.max(end, 0)).split('\n');
  if (first !== firstLine) return undefined;
  const extra = lines[0]?.startsWith('extra ') ? decodeBase64(lines.shift()?.slice('extra '.length) ?? '') : null;
  const [, digits] = /^index (0|[1-9]\d{0,15})$/.exec(lines.shift() ?? '') ?? [];
  const hashes = lines.map(decodeBase64);
  const index = Number(digits);
  if (extra === undefined || !Number.isSafeInteger(index) || hashes.length > 63) return undefined;
  const whole = hashes.filter((sibling) => sibling?.length === 32).filter((sibling) => sibling !== undefined);
  if (whole.length !== hashes.length) return undefined;
  return { extra: extra ?? undefined, index, hashes: whole, checkpoint: text.slice(end + 2) };
}

/**
 * The Merkle tree of RFC 6962, section 2.1, with SHA-256. A leaf is any text or bytes; all hashes have 32 bytes. A
 * range is `[from, to)` of leaves, counted from 0. Sizes are whole numbers up to 2^53.
 */

/** A range of leaves whose tree is part of a proof. */
export type LeafRange = readonly [from: number, to: number];

const leafPrefix = Buffer.from([0]);
const nodePrefix = Buffer.from([1]);

/** The root of the tree without leaves. */
export const emptyRoot: Buffer = hash('sha256', '', 'buffer');

/** The hash of a leaf. */
export function hashLeaf(leaf: string | Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([leafPrefix, typeof leaf === 'string' ? Buffer.from(leaf) : leaf]), 'buffer');
}

/** The hash of a node with two children. */
export function hashChildren(left: Uint8Array, right: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([nodePrefix, left, right]), 'buffer');
}

/** The complete subtrees of a tree that grows by leaves at its end: at most one for each power of two. */
export class MerkleFold {
  #size = 0;
  // The complete subtrees from left to right, which is from the largest to the smallest.
  readonly #roots: Buffer[] = [];

  get size(): number {
    return this.#size;
  }

  /** Adds a leaf by its hash. */
  add(leafHash: Buffer): void {
    let node = leafHash;
    for (let rest = this.#size; rest % 2 === 1; rest = Math.floor(rest / 2)) {
      node = hashChildren(pop(this.#roots), node);
    }
    this.#roots.push(node);
    this.#size += 1;
  }

  /** The root of the tree of all leaves that were added. */
  root(): Buffer {
    return this.#roots.length === 0 ? emptyRoot : joinRoots(this.#roots);
  }

  /**
   * The root of a tree whose leaves begin with complete subtrees of one size, which were added here as if they were
   * leaves, and end with `leafHashes`, which are fewer than such a subtree has.
   */
  rootWith(leafHashes: readonly Buffer[]): Buffer {
    return leafHashes.length === 0 ? this.root() : joinRoots([...this.#roots, rootOf(leafHashes)]);
  }
}

/** The root of a tree whose leaves have these hashes. */
export function rootOf(leafHashes: Iterable<Buffer>): Buffer {
  const fold = new MerkleFold();
  for (const leafHash of leafHashes) fold.add(leafHash);
  return fold.root();
}

/**
 * The hash of a complete subtree: the one of 2^level leaves that begins at leaf index × 2^level. Level 0 has the hashes
 * of leaves.
 */
export type ReadNode = (level: number, index: number) => Promise<Buffer>;

/** The root of the tree over a range that is part of a proof, read from complete subtrees. */
export async function hashOfRange([from, to]: LeafRange, read: ReadNode): Promise<Buffer> {
  const roots: Buffer[] = [];
  for (let at = from; at < to; ) {
    let level = 0;
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= to) level += 1;
    roots.push(await read(level, at / 2 ** level));
    at += 2 ** level;
  }
  return roots.length === 0 ? emptyRoot : joinRoots(roots);
}

/**
 * The ranges whose hashes prove that the leaf `index` is in the tree of `size` leaves, from the sibling of the leaf up.
 */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  if (index < 0 || index >= size) throw new RangeError(`no leaf ${index} in a tree of ${size}`);
  const ranges: LeafRange[] = [];
  let [from, to] = [0, size];
  while (to - from > 1) {
    const middle = from + splitOf(to - from);
    ranges.push(index < middle ? [middle, to] : [from, middle]);
    if (index < middle) to = middle;
    else from = middle;
  }
  return ranges.reverse();
}

/** The ranges whose hashes prove that the tree of `oldSize` leaves is the beginning of the tree of `size` leaves. */
export function consistencyRanges(oldSize: number, size: number): LeafRange[] {
  if (oldSize < 1 || oldSize > size) throw new RangeError(`no tree of ${oldSize} at the beginning of one of ${size}`);
  const ranges: LeafRange[] = [];
  let [from, to] = [0, size];
  while (oldSize !== to) {
    const middle = from + splitOf(to - from);
    ranges.push(oldSize <= middle ? [middle, to] : [from, middle]);
    if (oldSize <= middle) to = middle;
    else from = middle;
  }
  // The old tree itself is known to the reader where it is a complete subtree at the left edge.
  return (from === 0 ? ranges : [...ranges, [from, to] as const]).reverse();
}

/** The root that an inclusion proof leads to; undefined where the proof has the wrong length. RFC 9162, 2.1.3.2. */
export function rootFromInclusion(
  leafHash: Buffer,
  index: number,
  size: number,
  proof: readonly Buffer[],
): Buffer | undefined {
  if (index < 0 || index >= size) return undefined;
  const ranges = inclusionRanges(index, size);
  if (ranges.length !== proof.length) return undefined;
  return ranges.reduce((node, [from], step) => {
    const other = proof[step] ?? emptyRoot;
    return from > index ? hashChildren(node, other) : hashChildren(other, node);
  }, leafHash);
}

/** Whether the proof leads from the root of the old tree to the root of the new one. */
export function isConsistent(
  old: { readonly size: number; readonly root: Buffer },
  now: { readonly size: number; readonly root: Buffer },
  proof: readonly Buffer[],
): boolean {
  if (old.size > now.size) return false;
  if (old.size === 0) return proof.length === 0 && old.root.equals(emptyRoot);
  if (old.size === now.size) return proof.length === 0 && old.root.equals(now.root);
  const ranges = consistencyRanges(old.size, now.size);
  if (ranges.length !== proof.length) return false;
  // The first hash of the proof is the last subtree of the old tree, unless that is the old tree itself.
  const startsWithSubtree = ranges[0]?.[1] === old.size;
  const first = startsWithSubtree ? proof[0] : old.root;
  if (first === undefined) return false;
  let [oldNode, node] = [first, first];
  for (let step = startsWithSubtree ? 1 : 0; step < ranges.length; step += 1) {
    const [range, other] = [ranges[step], proof[step]];
    if (range === undefined || other === undefined) return false;
    if (range[1] <= old.size) {
      oldNode = hashChildren(other, oldNode);
      node = hashChildren(other, node);
    } else {
      node = hashChildren(node, other);
    }
  }
  return oldNode.equals(old.root) && node.equals(now.root);
}

/** The leaves of the left child of a tree: the greatest power of two that is less than its size. */
function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

function joinRoots(roots: readonly Buffer[]): Buffer {
  return roots.reduceRight((right, left) => hashChildren(left, right));
}

function pop(nodes: Buffer[]): Buffer {
  const node = nodes.pop();
  if (node === undefined) throw new Error('a tree lacks a subtree');
  return node;
}
