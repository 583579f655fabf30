import { sign, verify } from 'node:crypto';
import { formatSignature, type Note, type Signer, signatureTypes, type Verifier } from './note.ts';

/** Cosignatures of witnesses, as C2SP's tlog-cosignature has them: cosignature/v1, with a time in seconds. */

/** The line by which a witness says that it saw the text of a checkpoint at that time. */
export function cosign(text: string, witness: Signer, seconds: number): string {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(seconds));
  const signature = sign(null, message(text, seconds), witness.privateKey);
  return formatSignature({ name: witness.name, id: witness.id, bytes: Buffer.concat([time, signature]) });
}

/**
 * When the witness signed the note, in seconds since 1970; undefined where it did not, `'wrong'` where a signature of its key
 * is not for this text.
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
