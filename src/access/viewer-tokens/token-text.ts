import type { Sealer } from '../../core/sealing.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';

/** Lets secret scanners detect viewer tokens. */
const prefix = 'annals_view_';

/** Characters. Leaves room in the request's header fields. */
export const maxTokenLength = 3 * 1024;

const purpose = 'viewer token, format 1';

/** The content of a viewer token. Its maker's restriction is not part of it, but looked up on each use. */
export interface ViewerToken extends WrittenRestriction {
  /** The maker, which names the tenant. */
  readonly clientId: string;
  /** The viewing person. */
  readonly subject: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** Whether it permits exports. */
  readonly export: boolean;
}

/** The token as handed out: encrypted, so that the query stays secret. */
export function sealViewerToken(sealer: Sealer, token: ViewerToken): string {
  const sealed = sealer.seal(Buffer.from(JSON.stringify(token)), purpose);
  return prefix + Buffer.from(sealed).toString('base64url');
}

/** Undefined for a text not sealed by this installation. */
export function openViewerToken(sealer: Sealer, text: string): ViewerToken | undefined {
  if (!text.startsWith(prefix)) return undefined;
  const sealed = Buffer.from(text.slice(prefix.length), 'base64url');
  // Only the canonical encoding: no padding, no other alphabet, no unused bits in the last character.
  if (prefix + sealed.toString('base64url') !== text) return undefined;
  const opened = sealer.open(sealed, purpose);
  return opened === undefined ? undefined : (JSON.parse(Buffer.from(opened).toString()) as ViewerToken);
}
