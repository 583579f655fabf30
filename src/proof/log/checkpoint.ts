import { sign, verify } from 'node:crypto';
import { emptyRoot } from './merkle.ts';
import {
  decodeBase64,
  formatSignature,
  isSignedBy,
  type Note,
  parseNote,
  type Signer,
  signatureTypes,
  signNote,
  type Verifier,
} from './note.ts';

/**
 * What a log says about itself, as C2SP's tlog-checkpoint has it: how many leaves it has, and the root of their tree.
 */
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

/** Cosignatures of witnesses, as C2SP's tlog-cosignature has them: cosignature/v1, with a time in seconds. */

/** The line by which a witness says that it saw the text of a checkpoint at that time. */
export function cosign(text: string, witness: Signer, seconds: number): string {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(seconds));
  const signature = sign(null, message(text, seconds), witness.privateKey);
  return formatSignature({ name: witness.name, id: witness.id, bytes: Buffer.concat([time, signature]) });
}

/**
 * When the witness signed the note, in seconds since 1970; undefined where it did not, `'wrong'` where a signature of
 * its key is not for this text.
 */
export function cosignedAt({ text, signatures }: Note, witness: Verifier): number | undefined | 'wrong' {
  if (witness.type !== signatureTypes.cosignature) throw new RangeError(`${witness.name} is no key of a witness`);
  const own = signatures.filter(({ name, id }) => name === witness.name && id === witness.id);
  const times = own.map(({ bytes }) => {
    const seconds = bytes.length === 72 ? Number(bytes.readBigUInt64BE(0)) : 0;
    const isRight = seconds > 0 && verify(null, message(text, seconds), witness.publicKey, bytes.subarray(8));
    return isRight ? seconds : 'wrong';
  });
  return times.includes('wrong') ? 'wrong' : times[0];
}

/** Who says to have cosigned a note, and when, in seconds since 1970. Nothing of it is verified. */
export function cosignersOf({ signatures }: Note): { readonly name: string; readonly seconds: number }[] {
  return signatures.flatMap(({ name, bytes }) =>
    bytes.length === 72 ? [{ name, seconds: Number(bytes.readBigUInt64BE(0)) }] : [],
  );
}

function message(text: string, seconds: number): Buffer {
  return Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`);
}
