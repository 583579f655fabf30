import { AnnalsError } from '../core/errors.ts';
import type { Sealer } from '../core/sealing.ts';
import { decodePosition, encodePosition, type Position } from './position.ts';

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
export function sealCursor(sealer: Sealer, scope: CursorScope, position: Position, now: number): string {
  const time = Buffer.alloc(timeBytes);
  time.writeUIntBE(now + cursorLifetime, 0, timeBytes);
  const content = Buffer.concat([time, encodePosition(position)]);
  // The first byte of padding has the number of padding bytes, itself included.
  const padded = padding - (content.length % padding);
  const sealed = sealer.seal(Buffer.concat([Buffer.alloc(padded, padded), content]), boundTo(scope));
  return Buffer.from(sealed).toString('base64url');
}

/**
 * Decodes the position of a cursor. Every error is the same validation_violation, so that the caller does not learn which
 * check failed.
 */
export function openCursor(
  sealer: Sealer,
  scope: CursorScope,
  cursor: string,
  keyCount: number,
  now: number,
): Position {
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
