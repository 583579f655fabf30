import { type BundleEntry, BundleFault, type BundleField, parseLine } from '../bundle/lines.ts';
import { commitmentOf, entryLeaf, hashField, receiptLeaf } from '../log/commitment.ts';
import { countOfFields, type FieldLabel, labelsOf } from '../log/fields.ts';
import { hashLeaf, parseInclusionProof, rootFromInclusion } from '../log/merkle.ts';
import { isSignedBy, type Note, parseNote, parseVerifierKey, type Signer, signNote } from '../log/note.ts';
import { saltsOf } from '../log/salts.ts';
import { openByAnyKey } from './verify-tree.ts';

/** The first line of a certificate. No log has such a name, so no verifier takes one for a checkpoint. */
export const certificateStart = 'annals-erasure-v1\n';

/** A signed note: the first line, and what was erased as JSON. */
export function signCertificate(body: object, signer: Signer): string {
  return signNote(`${certificateStart}${JSON.stringify({ log: signer.name, ...body }, undefined, 2)}\n`, signer);
}

/**
 * The JSON text of a certificate that one of the keys signed; else why it is none: in words that follow "the
 * certificate".
 */
export function openCertificate(text: string, keys: readonly string[]): { readonly json: string } | string {
  const note = parseNote(text);
  if (note?.text.startsWith(certificateStart) !== true) return 'is no signed note';
  const json = note.text.slice(certificateStart.length);
  const signed = keys.map((key) => isSignedBy(note, parseVerifierKey(key)));
  if (signed.includes('wrong')) return 'has a signature that is not for this text';
  return signed.includes(true) ? { json } : 'is not signed by this key';
}

/** What a bundle hides of an entry without a receipt: it could reveal more than what is shown. */
const hiddenAtWill: readonly FieldLabel[] = ['identity', 'context'];

/**
 * The fields of an entry that are not shown, by the names of docs/proof.md; `'changed'` where the entry is not the
 * committed one.
 */
export function hiddenFields(entry: BundleEntry): readonly string[] | 'changed' {
  const { fields, cover, commitment } = entry;
  const count = countOfFields(entry);
  if (fields.length !== count) return 'changed';
  const labels = labelsOf(entry);
  const shown = fields.map((field) => !isHidden(field));
  let salts: (Buffer | null)[];
  try {
    salts = saltsOf({ cover, shown }, count);
  } catch (error) {
    if (error instanceof RangeError) return 'changed';
    throw error;
  }
  const hashes = fields.map((field, index) => {
    if (isHidden(field)) return field.hash;
    const [label, salt] = [labels[index], salts[index]];
    return label === undefined || !salt ? undefined : hashField(label, field, salt);
  });
  const whole = hashes.filter((hash) => hash !== undefined);
  if (whole.length !== count || !commitmentOf(entry, whole).equals(commitment)) return 'changed';
  return labels.flatMap((label, index) =>
    shown[index] === true || hiddenAtWill.includes(label) ? [] : [nameOf(label, index, entry)],
  );
}

function isHidden(field: BundleField | undefined): field is { readonly hash: Buffer } {
  return typeof field === 'object' && field !== null;
}

/** `before price.amount`: a side of a path has the name of its path, where that is shown. */
function nameOf(label: FieldLabel, index: number, { fields }: BundleEntry): string {
  const name = label === 'before' ? fields[index - 1] : label === 'after' ? fields[index - 2] : undefined;
  return typeof name === 'string' ? `${label} ${name}` : label;
}

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
  // All tenants of an installation have one key: the name says whose history it is, and a proof has no receipts of
  // continued logs.
  const names = keys.map((key) => parseVerifierKey(key).name);
  if (!names.includes(checkpoint.origin)) {
    return `is of the log ${checkpoint.origin}, and the key is of ${names.join(', ')}: each log has its own verifier key`;
  }
  const root = rootFromInclusion(hashLeaf(leaf), proof.index, checkpoint.size, proof.hashes);
  if (root === undefined || !root.equals(checkpoint.root)) return 'does not lead to the root of its checkpoint';
  const { origin, size } = checkpoint;
  return { position: line.position, origin, size, hidden, checkpoint: checkpoint.note };
}
