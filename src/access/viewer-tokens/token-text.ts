import type { Sealer } from '../../core/sealing.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';

/** Scanners of secrets know a viewer token by this. */
const prefix = 'annals_view_';

/** Characters: a header field has room for it, whatever else a request brings. */
export const maxTokenLength = 3 * 1024;

const purpose = 'viewer token, format 1';

/** What a viewer token says. The restriction of its maker is not in it: that is looked up, as it is when the token is used. */
export interface ViewerToken extends WrittenRestriction {
  /** The maker's, which names the tenant. */
  readonly clientId: string;
  /** Who looks. */
  readonly subject: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** Whether it gets files. */
  readonly export: boolean;
}

/** The token as its owner has it: encrypted, so that whoever looks learns nothing of the query. */
export function sealViewerToken(sealer: Sealer, token: ViewerToken): string {
  const sealed = sealer.seal(Buffer.from(JSON.stringify(token)), purpose);
  return prefix + Buffer.from(sealed).toString('base64url');
}

/** Undefined for any text that `sealViewerToken` has not made in this installation. */
export function openViewerToken(sealer: Sealer, text: string): ViewerToken | undefined {
  if (!text.startsWith(prefix)) return undefined;
  const sealed = Buffer.from(text.slice(prefix.length), 'base64url');
  // One token has one text: no padding, no other alphabet, no unused bits in the last character.
  if (prefix + sealed.toString('base64url') !== text) return undefined;
  const opened = sealer.open(sealed, purpose);
  return opened === undefined ? undefined : (JSON.parse(Buffer.from(opened).toString()) as ViewerToken);
}
