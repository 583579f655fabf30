import {
  type CommitmentVersion,
  countOfFields,
  type EntryFields,
  type FieldCounts,
  type FieldLabel,
  labelAt,
} from './fields.ts';
import { saltsBelow } from './salts.ts';
import { hashBytes, writeHash, writeHmac } from './sha256.ts';

/** Of one length. They tell a field of a later version from the first related item of an earlier one. */
const prefixes: Readonly<Record<CommitmentVersion, string>> = {
  1: 'annals-commitment-v1\n',
  2: 'annals-commitment-v2\n',
};
const countBytes = 4;
const headBytes = prefixes[1].length + 2 * countBytes;

/** The commitment to an entry whose fields are known, with their salts grown from a seed. */
export function commitmentOfEntry(fields: EntryFields, seed: Buffer): Buffer {
  const count = countOfFields(fields);
  const salts = saltsBelow(seed, count);
  const message = head(fields, count);
  for (let index = 0; index < count; index += 1) {
    const text = messageOf(labelAt(fields, index), fields.texts[index] ?? null);
    writeHmac(salts, index * hashBytes, text, message, headBytes + index * hashBytes);
  }
  return hashOfMessage(message);
}

/** The commitment to fields by their hashes. Throws a RangeError where there are too few or too many. */
export function commitmentOf(counts: FieldCounts, hashes: readonly Buffer[]): Buffer {
  const count = countOfFields(counts);
  if (hashes.length !== count || hashes.some((one) => one.length !== hashBytes)) {
    throw new RangeError(`${count} hashes were expected`);
  }
  const message = head(counts, count);
  for (const [index, one] of hashes.entries()) one.copy(message, headBytes + index * hashBytes);
  return hashOfMessage(message);
}

/** The hash of a field; `text` null: it is absent. */
export function hashField(label: FieldLabel, text: string | null, salt: Buffer): Buffer {
  const made = Buffer.allocUnsafe(hashBytes);
  writeHmac(salt, 0, messageOf(label, text), made, 0);
  return made;
}

function messageOf(label: FieldLabel, text: string | null): string {
  return text === null ? `${label}\n` : `${label}=${text}`;
}

function head({ version, related, paths }: FieldCounts, fields: number): Buffer {
  const message = Buffer.allocUnsafe(headBytes + fields * hashBytes);
  const prefix = prefixes[version];
  message.write(prefix, 'latin1');
  message.writeUInt32BE(related, prefix.length);
  message.writeUInt32BE(paths, prefix.length + countBytes);
  return message;
}

function hashOfMessage(message: Buffer): Buffer {
  const made = Buffer.allocUnsafe(hashBytes);
  writeHash(message, made, 0);
  return made;
}

/** The text of the leaf of an entry. */
export function entryLeaf(position: number, commitment: Buffer): string {
  return `annals-leaf-v1\n${position}\n${commitment.toString('base64')}\n`;
}

/** The text of the leaf of a receipt, which is JSON in one line. */
export function receiptLeaf(position: number, receipt: string): string {
  return `annals-receipt-v1\n${position}\n${receipt}\n`;
}

/** The text of the leaf of a position whose entry was gone before it was sealed. */
export function noneLeaf(position: number): string {
  return `annals-none-v1\n${position}\n`;
}
