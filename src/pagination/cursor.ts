import { AnnalsError } from '../errors.ts';
import type { Sealer } from '../sealing.ts';
import { decodePosition, encodePosition, type Position } from './position.ts';

/** What a cursor is good for; with anything else it does not open. */
export interface CursorScope {
  readonly tenant: string;
  readonly operation: string;
  readonly filter: string;
  readonly sort: string;
}

/** Milliseconds that a cursor lives (contract 10). */
export const cursorLifetime = 24 * 60 * 60 * 1000;

const maxCursorBytes = 4096;
const timeBytes = 6;
/** Lengths are rounded up to this many bytes, so that they tell little of what is in it. */
const padding = 16;

/** Makes the opaque text of a position. It is encrypted and bound to its scope; `now` is in milliseconds since 1970. */
export function sealCursor(sealer: Sealer, scope: CursorScope, position: Position, now: number): string {
  const time = Buffer.alloc(timeBytes);
  time.writeUIntBE(now + cursorLifetime, 0, timeBytes);
  const content = Buffer.concat([time, encodePosition(position)]);
  // The first byte of padding counts itself and what follows it.
  const padded = padding - (content.length % padding);
  const sealed = sealer.seal(Buffer.concat([Buffer.alloc(padded, padded), content]), boundTo(scope));
  return Buffer.from(sealed).toString('base64url');
}

/**
 * The position that a cursor stands for. Whatever is wrong with it, the answer is the same validation_violation: which
 * of the checks failed is nobody's business.
 */
export function openCursor(
  sealer: Sealer,
  scope: CursorScope,
  cursor: string,
  keyCount: number,
  now: number,
): Position {
  const sealed = Buffer.from(cursor, 'base64url');
  // One canonical form: no padding, no other alphabet, no stray bits in the last character.
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
