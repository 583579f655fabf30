import type { Sealer } from '../../core/sealing.ts';
import { AccessTokenFault, type ReadRestriction, type Restriction, type VerifyKey } from '../../http/credentials.ts';
import type { Database } from '../../postgres/database.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import type { CheckOnce } from '../oauth/check-secret.ts';
import { storedRestriction } from '../oauth/client-states.ts';
import type { LastUses } from '../oauth/last-uses.ts';
import { createStateCache } from '../state-cache.ts';
import { findGrant, type GrantRecord } from './grant-store.ts';
import { isTokenOf, readToken, type SentToken } from './token-text.ts';

/** Seconds. */
export const accessTokenLifetime = 3_600;

type GrantState = Omit<GrantRecord, 'restriction' | 'sealedKey'> & {
  readonly key: Uint8Array;
  readonly restriction: Restriction | undefined;
};

/**
 * Verifies the access tokens of grants. A grant verified before costs a MAC and a lookup in memory; its end takes effect
 * within 5 seconds. Forged tokens count towards the same limit as wrong client secrets.
 */
export function createGrantVerifier(options: {
  db: Database;
  sealer: Sealer;
  readRestriction: ReadRestriction;
  checkOnce: CheckOnce;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number;
  lastUses: LastUses;
}): VerifyKey {
  const { db, sealer, readRestriction, checkOnce, now, elapsed, lastUses } = options;
  const findState = createStateCache<GrantState>(async (tenant, id, previous) => {
    const grant = await findGrant(db, tenant, id);
    const key = grant && openGrantKey(sealer, tenant, grant.sealedKey);
    if (grant === undefined || key === undefined) return undefined;
    const restriction = storedRestriction(grant.restriction, previous?.restriction, readRestriction);
    return restriction === 'refused' ? undefined : { ...grant, key, restriction };
  }, elapsed);

  async function find({ tenant, grantId, ...token }: SentToken, address: string): Promise<GrantState> {
    const findIssuer = async () => {
      const state = await findState(tenant, grantId);
      return state !== undefined && isTokenOf(state.key, { tenant, grantId, ...token }) ? state : undefined;
    };
    return (
      ((lastUses.has(tenant, grantId) && (await findIssuer())) || undefined) ?? (await checkOnce(address, findIssuer))
    );
  }

  return async (tenant, text, address) => {
    const token = readToken(text);
    // A token of another tenant, a refresh token or a code is no access token here.
    if (token?.kind !== 'at' || token.tenant !== tenant) throw new AccessTokenFault('invalid');
    if ((token.number + accessTokenLifetime) * 1_000 <= now()) throw new AccessTokenFault('expired');
    const { name: clientName, onBehalfOf, person, scopes, restriction, expiresAt } = await find(token, address);
    if (expiresAt <= now()) throw new AccessTokenFault('expired');
    const { grantId: clientId } = token;
    lastUses.note(tenant, clientId, address);
    return { tenant, clientId, clientName, onBehalfOf, person, scopes, restriction };
  };
}

/** Undefined if no secret key opens it. */
export function openGrantKey(sealer: Sealer, tenant: string, sealed: Uint8Array): Uint8Array | undefined {
  return sealer.open(sealed, purposeOf(tenant));
}

export function sealGrantKey(sealer: Sealer, tenant: string, key: Uint8Array): Uint8Array {
  return sealer.seal(key, purposeOf(tenant));
}

const purposeOf = (tenant: string) => `key of a grant of ${tenant}`;

/** The sealed keys, for `annals secrets reseal`. */
export const sealedGrantKeys: SealedColumn = {
  table: 'access_grant',
  column: 'sealed_key',
  keys: ['tenant', 'grant_id'],
  purposeOf: ({ tenant }) => purposeOf(String(tenant)),
};
