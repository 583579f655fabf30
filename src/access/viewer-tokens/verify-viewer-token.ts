import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { AnnalsError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import { AccessTokenFault, type Credentials, type VerifyViewerToken } from '../../http/credentials.ts';
import type { ReadRestriction, Restriction } from '../../http/restriction.ts';
import { tenantOfClientId } from '../oauth/client-identity.ts';
import type { ClientState, FindClientState } from '../oauth/client-states.ts';
import { openViewerToken, type ViewerToken } from './token-text.ts';

/** Characters of the tokens that are known. What is read of a token takes ten times as much memory; 10,000 usual ones fit. */
const maxCharacters = 4 * 1024 * 1024;

interface KnownToken {
  readonly token: ViewerToken;
  readonly tenant: string;
  /** With the restriction that its maker had at the last use. */
  read?: { readonly ofMaker: Restriction | undefined; readonly restriction: Restriction };
}

/**
 * Checks viewer tokens. A token is opened once and then known by its hash. It ends at its time, and within 5 seconds after its maker was
 * revoked or may make none any more; what its maker may see holds for it too.
 */
export function createViewerTokenVerifier(options: {
  sealer: Sealer;
  findClientState: FindClientState;
  readRestriction: ReadRestriction;
  /** Milliseconds since 1970. */
  now: () => number;
}): VerifyViewerToken {
  const { sealer, findClientState, readRestriction, now } = options;
  const seen = new LRUCache<string, KnownToken>({ maxSize: maxCharacters });

  function find(text: string): KnownToken {
    const digest = hash('sha256', text, 'base64url');
    const known = seen.get(digest);
    if (known !== undefined) return known;
    const token = openViewerToken(sealer, text);
    const tenant = token && tenantOfClientId(token.clientId);
    if (token === undefined || tenant === undefined) throw new AccessTokenFault('invalid');
    const found = { token, tenant };
    seen.set(digest, found, { size: text.length });
    return found;
  }

  /** The maker's restriction comes first, and then that of the token. */
  function restrictionOf(known: KnownToken, ofMaker: Restriction | undefined): Restriction {
    if (known.read === undefined || known.read.ofMaker !== ofMaker) {
      const { query, hide, actors } = known.token;
      const restriction = readRestriction([...(ofMaker?.written ?? []), { query, hide, actors }]);
      known.read = { ofMaker, restriction };
    }
    return known.read.restriction;
  }

  function credentialsOf(known: KnownToken, maker: ClientState | undefined): Credentials {
    const mayIssue = maker?.revoked === false && maker.scopes.includes('changelog.viewer_issue');
    if (maker === undefined || !mayIssue) throw new AccessTokenFault('invalid');
    const { token, tenant } = known;
    const { clientId, subject, export: mayExport } = token;
    const restriction = readableOrRefused(() => restrictionOf(known, maker.restriction));
    const scopes = ['changelog.changelog_read'] as const;
    return { tenant, clientId, clientName: maker.name, scopes, restriction, viewer: { subject, mayExport } };
  }

  return (text) => {
    const known = find(text);
    if (known.token.expiresAt <= now()) throw new AccessTokenFault('expired');
    const maker = findClientState(known.tenant, known.token.clientId);
    return maker instanceof Promise ? maker.then((state) => credentialsOf(known, state)) : credentialsOf(known, maker);
  };
}

/** What the token asks for may be more than its maker may ask for now. */
function readableOrRefused(read: () => Restriction): Restriction {
  try {
    return read();
  } catch (error) {
    if (error instanceof AnnalsError) throw new AccessTokenFault('invalid');
    throw error;
  }
}
