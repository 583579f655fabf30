import { hash } from 'node:crypto';
import { identityLength } from './change.ts';

/** The identity of an imported change with an `id`. Each kind of identity has its own hash prefix. */
export function identityOfId(id: string): Buffer {
  return identityOf(`annals:id:${id}`);
}

/** The identity of a CloudEvent: its source and its id together. */
export function identityOfCloudEvent(source: string, id: string): Buffer {
  return identityOf(`annals:cloudevent:${JSON.stringify([source, id])}`);
}

const linePrefix = Buffer.from('annals:line:');

/** Reused for a prefix and a line. Longer lines allocate a buffer. */
const scratch = Buffer.concat([linePrefix], 16 * 1024);

/** The key shared by equal lines: the identity of the first. `line` has no line ending. */
export function identityOfLine(line: Buffer): Buffer {
  const length = linePrefix.length + line.length;
  if (length > scratch.length) return identityOf(Buffer.concat([linePrefix, line]));
  line.copy(scratch, linePrefix.length);
  return identityOf(scratch.subarray(0, length));
}

/** The identity of a line after `occurrence` equal lines in the file. */
export function identityOfRepeatedLine(first: Buffer, occurrence: number): Buffer {
  return occurrence === 0 ? first : identityOf(`annals:repeat:${first.toString('hex')}:${occurrence}`);
}

/** The identity of a line of a growing file: the file, and the offset where the line ends. */
export function identityOfPosition(file: string, end: number): Buffer {
  return identityOf(`annals:position:${JSON.stringify([file, end])}`);
}

/** A UUID of version 8 (RFC 9562) derived from a text: the correlation id of changes whose source has none. */
export function derivedUuid(text: string): string {
  const bytes = identityOf(text);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** The identity derived from a text. */
export function identityOf(text: string | Buffer): Buffer {
  // see hashOf
  return Buffer.from(hash('sha256', text, 'hex').slice(0, 2 * identityLength), 'hex');
}
