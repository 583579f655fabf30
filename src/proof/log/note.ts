import { createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';

/** Signed notes, as C2SP's signed-note has them: a text, and a line for each signature. */

/** The types of keys that Annals knows: of a log, and of a witness that signs with a time. */
export const signatureTypes = { ed25519: 1, cosignature: 4 } as const;
export type SignatureType = (typeof signatureTypes)[keyof typeof signatureTypes];

/** Who may sign, by a name and an Ed25519 key. */
export interface Verifier {
  readonly name: string;
  readonly type: SignatureType;
  /** The first four bytes of a hash, as a number. */
  readonly id: number;
  readonly publicKey: KeyObject;
}

export interface Signer extends Verifier {
  readonly privateKey: KeyObject;
}

export interface NoteSignature {
  readonly name: string;
  readonly id: number;
  readonly bytes: Buffer;
}

export interface Note {
  /** With the newline at its end. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** The bytes of a note at most, and its signatures. */
export const maxNote = { bytes: 1_000_000, signatures: 100 };

// DER before the 32 bytes of an Ed25519 key (RFC 8410).
const publicKeyPrefix = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * A verifier of a name and a public key. Throws a RangeError for a name that no note can have, and for another kind of
 * key.
 */
export function verifierOf(name: string, type: SignatureType, publicKey: KeyObject): Verifier {
  if (!isKeyName(name)) throw new RangeError('a key name has no spaces, no plus sign and no control characters');
  return { name, type, id: keyId(name, type, rawKey(publicKey)), publicKey };
}

/** The text of a verifier key: `name+id+key`. */
export function formatVerifierKey({ name, type, id, publicKey }: Verifier): string {
  const key = Buffer.concat([Buffer.from([type]), rawKey(publicKey)]).toString('base64');
  return `${name}+${hexId(id)}+${key}`;
}

/** What the text of a verifier key says. Throws a RangeError that says what is wrong with it. */
export function parseVerifierKey(text: string): Verifier {
  const [, name, id, key] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? [];
  const bytes = key === undefined ? undefined : decodeBase64(key);
  if (name === undefined || id === undefined || bytes === undefined || !isKeyName(name)) {
    throw new RangeError('a verifier key has the form name+id+key');
  }
  const type = Object.values(signatureTypes).find((known) => known === bytes[0]);
  if (type === undefined || bytes.length !== 33) throw new RangeError('the verifier key is not one of Ed25519');
  const publicKey = createPublicKey({
    key: Buffer.concat([publicKeyPrefix, bytes.subarray(1)]),
    format: 'der',
    type: 'spki',
  });
  const verifier = verifierOf(name, type, publicKey);
  if (hexId(verifier.id) !== id) throw new RangeError('the id of the verifier key is not that of its name and key');
  return verifier;
}

/** The line of a signature, with its newline. */
export function formatSignature({ name, id, bytes }: NoteSignature): string {
  const number = Buffer.alloc(4);
  number.writeUInt32BE(id);
  return `— ${name} ${Buffer.concat([number, bytes]).toString('base64')}\n`;
}

/** Signs a text, which ends with a newline, and answers the whole note. */
export function signNote(text: string, signer: Signer): string {
  const bytes = sign(null, Buffer.from(text), signer.privateKey);
  return `${text}\n${formatSignature({ name: signer.name, id: signer.id, bytes })}`;
}

/** Takes a note apart and verifies nothing. Undefined for what is no note. */
export function parseNote(note: string): Note | undefined {
  const end = note.lastIndexOf('\n\n');
  // Only newlines of all control characters, and no half of a surrogate pair, which UTF-8 cannot have.
  if (end < 0 || Buffer.byteLength(note) > maxNote.bytes || hasControls(note) || !note.isWellFormed()) return undefined;
  const signatures = parseSignatures(note.slice(end + 2));
  return signatures === undefined ? undefined : { text: note.slice(0, end + 1), signatures };
}

/** The signatures of lines of a note; undefined where a line is none, or there are none or too many. */
export function parseSignatures(lines: string): NoteSignature[] | undefined {
  if (!lines.endsWith('\n')) return undefined;
  const signatures = lines
    .slice(0, -1)
    .split('\n')
    .map((line) => {
      const [, name, value] = /^— ([^ ]+) ([^ ]+)$/.exec(line) ?? [];
      const bytes = value === undefined ? undefined : decodeBase64(value);
      if (name === undefined || !isKeyName(name) || bytes === undefined || bytes.length < 5) return undefined;
      return { name, id: bytes.readUInt32BE(0), bytes: bytes.subarray(4) };
    });
  return signatures.length > maxNote.signatures || signatures.includes(undefined)
    ? undefined
    : signatures.filter((signature) => signature !== undefined);
}

/**
 * Whether the verifier signed the note: `true`, `false` where there is no signature of it, `'wrong'` where there is one
 * that is not for this text; then the whole note is to be refused.
 */
export function isSignedBy(note: Note, verifier: Verifier): boolean | 'wrong' {
  const own = note.signatures.filter(({ name, id }) => name === verifier.name && id === verifier.id);
  if (own.length === 0) return false;
  const areRight = own.every(({ bytes }) => verify(null, Buffer.from(note.text), verifier.publicKey, bytes));
  return areRight ? true : 'wrong';
}

function keyId(name: string, type: SignatureType, key: Buffer): number {
  return hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([type]), key]), 'buffer').readUInt32BE(0);
}

function rawKey(publicKey: KeyObject): Buffer {
  if (publicKey.asymmetricKeyType !== 'ed25519') throw new RangeError('the key is not one of Ed25519');
  return publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
}

function hexId(id: number): string {
  return id.toString(16).padStart(8, '0');
}

function isKeyName(name: string): boolean {
  return name !== '' && !/[\s+\p{Zs}]/u.test(name) && !hasControls(name) && name.isWellFormed();
}

function hasControls(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a note may not have
  return /[\u0000-\u0009\u000b-\u001f]/.test(text);
}

/** The bytes of standard base64 with its padding; undefined for any other text: each sequence of bytes has one text. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}
