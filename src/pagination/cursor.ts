import { AnnalsError } from '../core/errors.ts';
import type { Sealer } from '../core/sealing.ts';

/**
 * A position between two rows of a sorted list: right before or right after a row with these keys. The position stays
 * valid when the row is deleted (contract 10: a position, not a row).
 */
export interface ListPosition {
  /** One sort key for each field except the id, as the database made them. Undefined means after the last row. */
  readonly row: RowPlace | undefined;
  readonly after: boolean;
}

export interface RowPlace {
  readonly keys: readonly Uint8Array[];
  readonly id: string;
}

/** Maximum bytes of a position: a cursor of 4 KiB can hold no more. */
const maxPositionBytes = 3_000;

const flagAfter = 1;
const flagEnd = 2;
const flagPacked = 4;

/**
 * Encodes a position as bytes. Long keys take 21 bits for each character, so that 8 fields of 128 characters and an id
 * of 255 bytes always fit. The modules that create ids refuse a longer id.
 */
function encodePosition({ row, after }: ListPosition): Buffer {
  const flags = (after ? flagAfter : 0) | (row === undefined ? flagEnd : 0);
  if (row === undefined) return Buffer.of(flags);
  const id = Buffer.from(row.id);
  const plain = row.keys.flatMap((key) => [lengthBytes(key.length), key]);
  const whole = Buffer.concat([Buffer.of(flags), ...plain, id]);
  if (whole.length <= maxPositionBytes) return whole;
  const packed = row.keys.map(packKey).flatMap((key) => [lengthBytes(key.length), key]);
  return Buffer.concat([Buffer.of(flags | flagPacked), ...packed, id]);
}

function decodePosition(bytes: Buffer, keyCount: number): ListPosition {
  const flags = bytes.readUInt8(0);
  const after = (flags & flagAfter) !== 0;
  if ((flags & flagEnd) !== 0) return { row: undefined, after };
  let offset = 1;
  const keys = Array.from({ length: keyCount }, () => {
    const length = bytes.readUInt16BE(offset);
    const key = bytes.subarray(offset + 2, offset + 2 + length);
    offset += 2 + length;
    return (flags & flagPacked) === 0 ? key : unpackKey(key);
  });
  return { row: { keys, id: bytes.toString('utf8', offset) }, after };
}

function lengthBytes(length: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(length);
  return bytes;
}

// The first byte of a key is its kind (sort_key in the database). For a descending key, all bytes are inverted.
const textKinds = [0x10, 0x40, 0x50];
const bitsOfCharacter = 21;

/** A text key becomes its first byte and its characters at 21 bits each. Any other key is unchanged. */
function packKey(key: Uint8Array): Buffer {
  const inverted = (key[0] ?? 0) >= 0x80;
  const upright = inverted ? invert(key) : Buffer.from(key);
  if (!textKinds.includes(upright[0] ?? 0)) return Buffer.from(key);
  // Drops the zero byte at the end. The escapes of U+0000 and U+0001 become one character again.
  const text = upright
    .toString('utf8', 1, upright.length - 1)
    .replaceAll(pairs, (pair) => (pair === zero ? '\0' : '\u0001'));
  let bits = 0n;
  let count = 0;
  for (const character of text) {
    bits = (bits << BigInt(bitsOfCharacter)) | BigInt(character.codePointAt(0) ?? 0);
    count += 1;
  }
  const size = Math.ceil((count * bitsOfCharacter) / 8);
  return Buffer.concat([Buffer.of(key[0] ?? 0, count), Buffer.from(bits.toString(16).padStart(size * 2, '0'), 'hex')]);
}

function unpackKey(packed: Uint8Array): Buffer {
  const first = packed[0] ?? 0;
  const inverted = first >= 0x80;
  const kind = inverted ? 0xff - first : first;
  if (!textKinds.includes(kind)) return Buffer.from(packed);
  let bits = BigInt(`0x0${Buffer.from(packed.subarray(2)).toString('hex')}`);
  const characters: string[] = [];
  for (let count = packed[1] ?? 0; count > 0; count -= 1) {
    characters.push(String.fromCodePoint(Number(bits & 0x1fffffn)));
    bits >>= BigInt(bitsOfCharacter);
  }
  const text = characters
    .reverse()
    .join('')
    .replaceAll(zeroOrOne, (character) => (character === '\0' ? zero : one));
  const upright = Buffer.concat([Buffer.of(kind), Buffer.from(text), Buffer.of(0)]);
  return inverted ? invert(upright) : upright;
}

function invert(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.map((byte) => 0xff - byte));
}

const zero = '\u0001\u0001';
const one = '\u0001\u0002';
// biome-ignore-start lint/suspicious/noControlCharactersInRegex: the two characters that are escaped in the database
const pairs = /\u0001[\u0001\u0002]/g;
const zeroOrOne = /[\u0000\u0001]/g;
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: as above

/** The scope of a cursor. The cursor does not open with another scope. */
export interface CursorScope {
  readonly tenant: string;
  readonly operation: string;
  readonly filter: string;
  readonly sort: string;
}

/** Milliseconds after which a cursor is expired (contract 10). */
const cursorLifetime = 24 * 60 * 60 * 1000;

const maxCursorBytes = 4096;
const timeBytes = 6;
/** Lengths are rounded up to this many bytes, so that the length of a cursor tells little about its content. */
const padding = 16;

/** Encodes a position as an opaque text: encrypted and bound to its scope. `now` is in milliseconds since 1970. */
export function sealCursor(sealer: Sealer, scope: CursorScope, position: ListPosition, now: number): string {
  const time = Buffer.alloc(timeBytes);
  time.writeUIntBE(now + cursorLifetime, 0, timeBytes);
  const content = Buffer.concat([time, encodePosition(position)]);
  // The first byte of padding has the number of padding bytes, itself included.
  const padded = padding - (content.length % padding);
  const sealed = sealer.seal(Buffer.concat([Buffer.alloc(padded, padded), content]), boundTo(scope));
  return Buffer.from(sealed).toString('base64url');
}

/**
 * Decodes the position of a cursor. Every error is the same validation_violation, so that the caller does not learn
 * which check failed.
 */
export function openCursor(
  sealer: Sealer,
  scope: CursorScope,
  cursor: string,
  keyCount: number,
  now: number,
): ListPosition {
  const sealed = Buffer.from(cursor, 'base64url');
  // There is one canonical form: no padding, no other alphabet, no unused bits in the last character.
  if (cursor.length > maxCursorBytes || sealed.toString('base64url') !== cursor) throw invalidCursor();
  const opened = sealer.open(sealed, boundTo(scope));
  if (opened === undefined) throw invalidCursor();
  const content = Buffer.from(opened.subarray(opened[0] ?? 0));
  if (now >= content.readUIntBE(0, timeBytes)) throw invalidCursor();
  return decodePosition(content.subarray(timeBytes), keyCount);
}

function boundTo({ tenant, operation, filter, sort }: CursorScope): string {
  return JSON.stringify(['pagination cursor, format 1', tenant, operation, filter, sort]);
}

function invalidCursor(): AnnalsError {
  return new AnnalsError('validation_violation', 'The cursor is not valid for this request.');
}
