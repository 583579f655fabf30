import { BundleFault, type BundleHeader, type BundleLine } from '../bundle/lines.ts';
import { openCheckpoint, type SignedCheckpoint } from '../log/checkpoint.ts';
import { entryLeaf, noneLeaf, receiptLeaf } from '../log/commitment.ts';
import { hashLeaf, MerkleFold, rootOf } from '../log/merkle.ts';
import { parseVerifierKey, signatureTypes, type Verifier, verifierOf } from '../log/note.ts';
import { type KnownReceipt, parseReceipt, Receipts } from '../log/receipt-text.ts';
import { tileWidth } from '../log/tiles.ts';

/** From one position to another, both included. */
export type PositionRange = readonly [from: number, to: number];

/** What the leaves of a bundle say about its tree. */
export interface TreeResult {
  readonly header: BundleHeader;
  /** The checkpoint of the bundle; else what is wrong with it, in words that follow "the checkpoint". */
  readonly checkpoint: SignedCheckpoint | string;
  readonly size: number;
  /** Whether the leaves have the root of the checkpoint. */
  readonly isRight: boolean;
  /**
   * Whether the leaves up to the size of the old checkpoint have its root; undefined where there are fewer, or none was
   * given.
   */
  readonly isOldRight: boolean | undefined;
  /**
   * Positions whose leaves are not those of the checkpoint, in blocks of 256 or, where they cannot be located, as a
   * whole.
   */
  readonly wrongBlocks: readonly PositionRange[];
  readonly receipts: Receipts;
  /** Blocks whose hash in the log is not that of their leaves, which are right. */
  readonly wrongTiles: readonly PositionRange[];
  /** Receipts whose texts are not those that were sealed, or are not there. */
  readonly wrongReceipts: ReadonlySet<number>;
  /** Positions at which the bundle has the text of a receipt, and the log has something else. */
  readonly strayReceipts: readonly number[];
  /** Receipts that were sealed, and say nothing that Annals understands. */
  readonly unknownReceipts: readonly number[];
}

/**
 * Reads all leaves of a bundle, and none of its entries' fields: first the whole tree has to be that of the checkpoint.
 * Throws a BundleFault where positions are missing or stand in another order.
 */
export async function verifyTree(
  lines: AsyncIterable<BundleLine>,
  keys: readonly string[],
  old?: { readonly size: number; readonly root: Buffer },
): Promise<TreeResult> {
  const [leaves, blocks] = [new MerkleFold(), new MerkleFold()];
  const texts = new Map<number, string>();
  // Only what the tree contains excuses anything.
  const sealed = new Map<number, string>();
  const wrongReceipts = new Set<number>();
  const suspect: PositionRange[] = [];
  let header: BundleHeader | undefined;
  let size: number | undefined;
  let rootAtOld: Buffer | undefined;
  let block: Buffer[] = [];

  const add = (position: number, leaf: Buffer): void => {
    if (block.length === tileWidth) throw new BundleFault(`lacks the hash of the block before position ${position}`);
    if (position !== leaves.size + 1) throw new BundleFault(`lacks position ${leaves.size + 1}`);
    leaves.add(leaf);
    block.push(leaf);
    const text = texts.get(position);
    if (text !== undefined && hashLeaf(receiptLeaf(position, text)).equals(leaf)) sealed.set(position, text);
    if (leaves.size === old?.size) rootAtOld = leaves.root();
  };

  for await (const line of lines) {
    if (size !== undefined) throw new BundleFault('continues behind its end');
    if ((header === undefined) !== (line.kind === 'header')) throw new BundleFault('does not begin with one header');
    if (line.kind === 'header') header = line;
    else if (line.kind === 'receipt text') {
      if (leaves.size > 0 || texts.has(line.position)) {
        throw new BundleFault(`has the receipt at position ${line.position} twice, or behind positions`);
      }
      texts.set(line.position, line.text);
    } else if (line.kind === 'entry' || line.kind === 'gone') {
      add(line.position, hashLeaf(entryLeaf(line.position, line.commitment)));
    } else if (line.kind === 'none') add(line.position, hashLeaf(noneLeaf(line.position)));
    else if (line.kind === 'receipt') {
      add(line.position, line.leaf);
      if (!sealed.has(line.position)) wrongReceipts.add(line.position);
    } else if (line.kind === 'hashes') {
      for (const [place, hash] of line.hashes.entries()) add(line.from + place, hash);
    } else if (line.kind === 'tile') {
      if (block.length !== tileWidth || line.index !== blocks.size)
        throw new BundleFault('has a block out of its place');
      if (!rootOf(block).equals(line.hash)) suspect.push([leaves.size - tileWidth + 1, leaves.size]);
      blocks.add(line.hash);
      block = [];
    } else size = line.size;
  }
  if (header === undefined || size === undefined) throw new BundleFault('has no end: it was not written wholly');
  if (size !== leaves.size || block.length === tileWidth) throw new BundleFault(`lacks positions before its end`);

  const checkpoint = openByAnyKey(header.checkpoint, keys);
  const isRight = typeof checkpoint !== 'string' && checkpoint.size === size && checkpoint.root.equals(leaves.root());
  const isOldRight = old === undefined || old.size === 0 ? undefined : rootAtOld?.equals(old.root);
  const sealedUpTo = isOldRight === true ? (old?.size ?? 0) : 0;
  const root = blocks.rootWith(block);
  const wrongBlocks = isRight ? [] : wrongRanges(checkpoint, { size, sealedUpTo, suspect, root });
  const wrongTiles = isRight ? suspect : [];
  const strayReceipts = [...texts.keys()].filter((position) => !sealed.has(position) && !wrongReceipts.has(position));
  const known = [...sealed].map(([position, text]) => parseReceipt(position, text));
  const receipts = new Receipts(known.filter((one): one is KnownReceipt => one !== undefined));
  const unknownReceipts = [...sealed.keys()].filter((_position, place) => known[place] === undefined);
  const found = { receipts, wrongReceipts, strayReceipts, unknownReceipts };
  return { header, checkpoint, size, isRight, isOldRight, wrongBlocks, wrongTiles, ...found };
}

/**
 * The positions that differ from the signed tree, located by the log's own hashes of blocks if these lead to its root.
 */
function wrongRanges(
  checkpoint: SignedCheckpoint | string,
  {
    size,
    sealedUpTo,
    suspect,
    root,
  }: { size: number; sealedUpTo: number; suspect: readonly PositionRange[]; root: Buffer },
): readonly PositionRange[] {
  const isExplained = typeof checkpoint !== 'string' && checkpoint.size === size && root.equals(checkpoint.root);
  if (isExplained) return suspect;
  return size === sealedUpTo ? [] : [[sealedUpTo + 1, size]];
}

/**
 * A checkpoint that one of the keys signed, under any name: a log that continues after a restore has a name of its own.
 */
export function openByAnyKey(text: string, keys: readonly string[]): SignedCheckpoint | string {
  const origin = text.slice(0, Math.max(text.indexOf('\n'), 0));
  let reason = 'is not signed by this key';
  for (const key of keys) {
    const opened = openCheckpoint(text, renamed(parseVerifierKey(key), origin));
    if (typeof opened !== 'string') return opened;
    reason = opened;
  }
  return reason;
}

function renamed(verifier: Verifier, origin: string): Verifier {
  try {
    return verifierOf(origin, signatureTypes.ed25519, verifier.publicKey);
  } catch {
    return verifier;
  }
}
