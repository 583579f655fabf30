import { AnnalsError, invalidField } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';

/** The entry that a ref stands for. */
export interface EntryKey {
  /** In milliseconds since 1970. */
  readonly at: number;
  /** 32 hexadecimal digits. */
  readonly identity: string;
}

const timeBytes = 6;
const identityBytes = 16;

/**
 * An opaque text that stands for an entry, always the same text: encrypted, and bound to the tenant. It does not
 * expire, and stands for the same entry after a backup was restored.
 */
export function sealRef(sealer: Sealer, tenant: string, { at, identity }: EntryKey): string {
  const content = Buffer.alloc(timeBytes + identityBytes);
  content.writeUIntBE(at, 0, timeBytes);
  content.write(identity, timeBytes, 'hex');
  return Buffer.from(sealer.sealAlike(content, purposeOf(tenant))).toString('base64url');
}

/** The entry of a ref. Throws validation_violation for any text that is no ref of this tenant. */
export function openRef(sealer: Sealer, tenant: string, ref: string): EntryKey {
  const sealed = Buffer.from(ref, 'base64url');
  // There is one canonical form: no padding, no other alphabet, no unused bits in the last character.
  const opened = sealed.toString('base64url') === ref ? sealer.open(sealed, purposeOf(tenant)) : undefined;
  if (opened?.length !== timeBytes + identityBytes) {
    throw invalidField('ref', 'ref is not a ref of a change of this tenant');
  }
  const content = Buffer.from(opened);
  return { at: content.readUIntBE(0, timeBytes), identity: content.toString('hex', timeBytes) };
}

/** For a ref whose entry retention has deleted. */
export function changeIsGone(): AnnalsError {
  return new AnnalsError('resource_not_found', 'This change is not kept any more.');
}

function purposeOf(tenant: string): string {
  return JSON.stringify(['ref of a change entry, format 1', tenant]);
}
