import { entryLeaf, receiptLeaf } from '../encoding/leaf.ts';
import { parseInclusionProof } from '../tlog/inclusion-proof.ts';
import { hashLeaf, rootFromInclusion } from '../tlog/merkle.ts';
import type { Note } from '../tlog/note.ts';
import { BundleFault, parseLine } from './lines.ts';
import { hiddenFields } from './verify-entry.ts';
import { openByAnyKey } from './verify-tree.ts';

export interface ProofResult {
  readonly position: number;
  /** The checkpoint's origin and size. */
  readonly origin: string;
  readonly size: number;
  /** Fields that are not shown. */
  readonly hidden: readonly string[];
  /** Of the checkpoint, for a policy. */
  readonly checkpoint: Note;
}

/**
 * Verifies the proof of one entry or receipt. Answers why it is none, in words that follow "the proof", where it is
 * wrong. Throws a BundleFault for what is no proof of Annals.
 */
export function verifyProof(text: string, keys: readonly string[]): ProofResult | string {
  const proof = parseInclusionProof(text);
  if (proof?.extra === undefined) throw new BundleFault('is no proof of an entry');
  const line = parseLine(proof.extra.toString());
  if (line.kind !== 'entry' && line.kind !== 'receipt text') throw new BundleFault('is no proof of an entry');
  if (line.position !== proof.index + 1) return 'is for another position';
  const hidden = line.kind === 'entry' ? hiddenFields(line) : [];
  if (hidden === 'changed') return 'shows an entry that is not what was sealed';
  const leaf =
    line.kind === 'entry' ? entryLeaf(line.position, line.commitment) : receiptLeaf(line.position, line.text);
  const checkpoint = openByAnyKey(proof.checkpoint, keys);
  if (typeof checkpoint === 'string') return `has a checkpoint that ${checkpoint}`;
  const root = rootFromInclusion(hashLeaf(leaf), proof.index, checkpoint.size, proof.hashes);
  if (root === undefined || !root.equals(checkpoint.root)) return 'does not lead to the root of its checkpoint';
  const { origin, size } = checkpoint;
  return { position: line.position, origin, size, hidden, checkpoint: checkpoint.note };
}
