import { entryLeaf, receiptLeaf } from '../encoding/leaf.ts';
import { parseInclusionProof } from '../tlog/inclusion-proof.ts';
import { hashLeaf, rootFromInclusion } from '../tlog/merkle.ts';
import { type Note, parseVerifierKey } from '../tlog/note.ts';
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

const newline = 0x0a;

/**
 * Verifies the proof of one entry or receipt. Answers why it is none, in words that follow "the proof", where it is
 * wrong. Throws a BundleFault for what is no proof of Annals.
 */
export function verifyProof(text: string, keys: readonly string[]): ProofResult | string {
  const proof = parseInclusionProof(text);
  if (proof?.extra === undefined) throw new BundleFault('is no proof of an entry');
  const line = parseLine(proof.extra.subarray(0, proof.extra.at(-1) === newline ? -1 : undefined));
  if (line.kind !== 'entry' && line.kind !== 'gone' && line.kind !== 'receipt text')
    throw new BundleFault('is no proof of an entry');
  if (line.position !== proof.index + 1) return 'is for another position';
  const hidden = line.kind === 'entry' ? hiddenFields(line) : line.kind === 'gone' ? ['all of the change'] : [];
  if (hidden === 'changed') return 'shows an entry that is not what was sealed';
  const leaf =
    line.kind === 'receipt text' ? receiptLeaf(line.position, line.text) : entryLeaf(line.position, line.commitment);
  const checkpoint = openByAnyKey(proof.checkpoint, keys);
  if (typeof checkpoint === 'string') return `has a checkpoint that ${checkpoint}`;
  // All tenants of an installation have one key: the name tells whose history it is, and a proof has no receipts of logs that went on.
  const names = keys.map((key) => parseVerifierKey(key).name);
  if (!names.includes(checkpoint.origin)) {
    return `is of the log ${checkpoint.origin}, and the key is of ${names.join(', ')}: each log has its own verifier key`;
  }
  const root = rootFromInclusion(hashLeaf(leaf), proof.index, checkpoint.size, proof.hashes);
  if (root === undefined || !root.equals(checkpoint.root)) return 'does not lead to the root of its checkpoint';
  const { origin, size } = checkpoint;
  return { position: line.position, origin, size, hidden, checkpoint: checkpoint.note };
}
