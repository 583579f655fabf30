import { decodeBase64 } from './base64.ts';
import { emptyRoot } from './merkle.ts';
import { isSignedBy, type Note, parseNote, type Signer, signNote, type Verifier } from './note.ts';

/** What a log says about itself, as C2SP's tlog-checkpoint has it: how many leaves it has, and the root of their tree. */
export interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

export interface SignedCheckpoint extends Checkpoint {
  readonly note: Note;
}

/** The text that is signed. */
export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${root.toString('base64')}\n`;
}

/** The note of a checkpoint, signed by the key of its log. */
export function signCheckpoint(checkpoint: Checkpoint, signer: Signer): string {
  return signNote(formatCheckpoint(checkpoint), signer);
}

/** What the note of a checkpoint says, without a look at its signatures; undefined for anything else. */
export function parseCheckpoint(text: string): SignedCheckpoint | undefined {
  const note = parseNote(text);
  const [origin, size, root, ...more] = note?.text.slice(0, -1).split('\n') ?? [];
  if (note === undefined || !origin || size === undefined || root === undefined || more.includes('')) return undefined;
  const hash = decodeBase64(root);
  const count = /^(?:0|[1-9]\d{0,15})$/.test(size) ? Number(size) : Number.NaN;
  if (hash?.length !== 32 || !Number.isSafeInteger(count)) return undefined;
  if (count === 0 && !hash.equals(emptyRoot)) return undefined;
  return { origin, size: count, root: hash, note };
}

/** The checkpoint of a note that the log signed; else why it is not one: in words that follow "the checkpoint". */
export function openCheckpoint(text: string, log: Verifier): SignedCheckpoint | string {
  const checkpoint = parseCheckpoint(text);
  if (checkpoint === undefined) return 'is no signed checkpoint';
  if (checkpoint.origin !== log.name) return `is of the log ${checkpoint.origin}, and the key is of ${log.name}`;
  const signed = isSignedBy(checkpoint.note, log);
  if (signed === 'wrong') return 'has a signature that is not for this text';
  return signed ? checkpoint : 'is not signed by this key';
}
