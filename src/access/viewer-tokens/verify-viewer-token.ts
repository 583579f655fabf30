import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { correlationSeal } from '../../core/correlation-seal.ts';
import { AnnalsError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import {
  AccessTokenFault,
  type Credentials,
  type ReadRestriction,
  type Restriction,
  type VerifyViewerToken,
} from '../../http/credentials.ts';
import { mayReadContext } from '../../http/scopes.ts';
import { tenantOfClientId } from '../oauth/client-identity.ts';
import type { ClientState, FindClientState } from '../oauth/client-states.ts';
import { openViewerToken, type ViewerToken } from './token-text.ts';

/** Characters of the cached tokens. Their parsed form takes ten times the memory; 10,000 tokens of common size fit. */
const maxCharacters = 4 * 1024 * 1024;

interface OpenedToken {
  readonly token: ViewerToken;
  readonly tenant: string;
  /** With its maker's restriction and right to contexts at the last use. */
  read?: {
    readonly ofMaker: Restriction | undefined;
    readonly readsContext: boolean;
    readonly restriction: Restriction;
  };
}

/**
 * Verifies viewer tokens, each opened once and cached by its hash. A token ends at its expiry, and within 5 seconds
 * after its maker is revoked or loses the permission. Its maker's restriction applies too.
 */
export function createViewerTokenVerifier(options: {
  sealer: Sealer;
  findClientState: FindClientState;
  readRestriction: ReadRestriction;
  /** Milliseconds since 1970. */
  now: () => number;
}): VerifyViewerToken {
  const { sealer, findClientState, readRestriction, now } = options;
  const cache = new LRUCache<string, OpenedToken>({ maxSize: maxCharacters });

  function find(text: string): OpenedToken {
    const digest = hash('sha256', text, 'base64url');
    const opened = cache.get(digest);
    if (opened !== undefined) return opened;
    const token = openViewerToken(sealer, text);
    const tenant = token && tenantOfClientId(token.clientId);
    if (token === undefined || tenant === undefined) throw new AccessTokenFault('invalid');
    const entry = { token, tenant };
    cache.set(digest, entry, { size: text.length });
    return entry;
  }

  /** The maker's restriction, then the token's. */
  function restrictionOf(opened: OpenedToken, { restriction: ofMaker, scopes }: ClientState): Restriction {
    const { read } = opened;
    const readsContext = mayReadContext(scopes);
    if (read?.ofMaker === ofMaker && read?.readsContext === readsContext) return read.restriction;
    const { query, hide, actors, clientId: maker } = opened.token;
    const correlations = correlationSeal(sealer, { tenant: opened.tenant, maker, subject: '' });
    const author = { scopes, restriction: ofMaker && { ...ofMaker, correlations } };
    const restriction = readRestriction([...(ofMaker?.written ?? []), { query, hide, actors }], author);
    opened.read = { ofMaker, readsContext, restriction };
    return restriction;
  }

  function credentialsOf(opened: OpenedToken, maker: ClientState | undefined): Credentials {
    const mayIssue = maker?.revoked === false && maker.scopes.includes('changelog.viewer_issue');
    if (maker === undefined || !mayIssue) throw new AccessTokenFault('invalid');
    const { token, tenant } = opened;
    const { clientId, subject, export: mayExport } = token;
    const restriction = readableOrRefused(() => restrictionOf(opened, maker));
    const scopes = ['changelog.changelog_read'] as const;
    return { tenant, clientId, clientName: maker.name, scopes, restriction, viewer: { subject, mayExport } };
  }

  return (text) => {
    const opened = find(text);
    if (opened.token.expiresAt <= now()) throw new AccessTokenFault('expired');
    const maker = findClientState(opened.tenant, opened.token.clientId);
    return maker instanceof Promise
      ? maker.then((state) => credentialsOf(opened, state))
      : credentialsOf(opened, maker);
  };
}

/** The token may ask for more than its maker is allowed now. */
function readableOrRefused(read: () => Restriction): Restriction {
  try {
    return read();
  } catch (error) {
    if (error instanceof AnnalsError) throw new AccessTokenFault('invalid');
    throw error;
  }
}
