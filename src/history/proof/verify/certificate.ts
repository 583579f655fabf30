import { isSignedBy, parseNote, parseVerifierKey, type Signer, signNote } from '../tlog/note.ts';

/** The first line of a certificate. No log has such a name, so no verifier takes one for a checkpoint. */
export const certificateStart = 'annals-erasure-v1\n';

/** A signed note: the first line, and what was erased as JSON. */
export function signCertificate(body: object, signer: Signer): string {
  return signNote(`${certificateStart}${JSON.stringify({ log: signer.name, ...body }, undefined, 2)}\n`, signer);
}

/** The JSON text of a certificate that one of the keys signed; else why it is none: in words that follow "the certificate". */
export function openCertificate(text: string, keys: readonly string[]): { readonly json: string } | string {
  const note = parseNote(text);
  if (note?.text.startsWith(certificateStart) !== true) return 'is no signed note';
  const json = note.text.slice(certificateStart.length);
  const signed = keys.map((key) => isSignedBy(note, parseVerifierKey(key)));
  if (signed.includes('wrong')) return 'has a signature that is not for this text';
  return signed.includes(true) ? { json } : 'is not signed by this key';
}
