import { AnnalsError, invalidField } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Position } from '../../recording/positions.ts';

const positionBytes = 6;
const fingerprintBytes = 4;

/**
 * An opaque text that stands for a position of a tenant and its fingerprint, always the same text: encrypted, and bound
 * to the tenant. It does not expire, and is valid for any query.
 */
export function sealFeedCursor(sealer: Sealer, tenant: string, { position, fingerprint }: Position): string {
  const content = Buffer.alloc(positionBytes + fingerprintBytes);
  content.writeUIntBE(position, 0, positionBytes);
  content.writeInt32BE(fingerprint, positionBytes);
  return Buffer.from(sealer.sealAlike(content, purposeOf(tenant))).toString('base64url');
}

/** The position of a cursor. Throws validation_violation for any text that is no cursor of this tenant. */
export function openFeedCursor(sealer: Sealer, tenant: string, cursor: string, field = 'after'): Position {
  const sealed = Buffer.from(cursor, 'base64url');
  // There is one canonical form: no padding, no other alphabet, no unused bits in the last character.
  const opened = sealed.toString('base64url') === cursor ? sealer.open(sealed, purposeOf(tenant)) : undefined;
  if (opened?.length !== positionBytes + fingerprintBytes) {
    throw invalidField(field, `${field} is not a cursor of the feed of this tenant`);
  }
  const content = Buffer.from(opened);
  return { position: content.readUIntBE(0, positionBytes), fingerprint: content.readInt32BE(positionBytes) };
}

/** The database was restored: the position of the cursor differs, or does not exist yet. */
export class RestoredCursor extends AnnalsError {
  /** The cursor before the oldest entry that is kept. */
  readonly oldest: string;
  readonly oldestPosition: Position;

  constructor(oldest: string, oldestPosition: Position) {
    super('cursor_invalid', 'The database was restored to an earlier state. The cursor does not fit it any more.', {
      details: [
        { field: 'reason', message: 'restored' },
        { field: 'oldest', message: oldest },
      ],
    });
    this.oldest = oldest;
    this.oldestPosition = oldestPosition;
  }
}

function purposeOf(tenant: string): string {
  return JSON.stringify(['cursor of the feed, format 1', tenant]);
}
