import { isTenantName } from '../../http/chosen-id.ts';
import {
  AccessTokenFault,
  type Credentials,
  type ReadRestriction,
  type Restriction,
  type VerifyKey,
} from '../../http/credentials.ts';
import type { Database } from '../../postgres/database.ts';
import type { CheckOnce } from '../oauth/check-secret.ts';
import { storedRestriction } from '../oauth/client-states.ts';
import type { LastUses } from '../oauth/last-uses.ts';
import { createStateCache } from '../state-cache.ts';
import { findKey, type KeyRecord } from './key-store.ts';
import { isSecretOf, type KeyText, readKey } from './key-text.ts';

type KeyState = Omit<KeyRecord, 'restriction'> & { readonly restriction: Restriction | undefined };

/**
 * Verifies keys. A key verified before costs a hash and a lookup in memory; a revocation takes effect within 5 seconds.
 * Wrong keys count towards the same limit as wrong client secrets.
 */
export function createKeyVerifier(options: {
  db: Database;
  readRestriction: ReadRestriction;
  checkOnce: CheckOnce;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number;
  lastUses: LastUses;
}): VerifyKey {
  const { db, readRestriction, checkOnce, now, elapsed, lastUses } = options;
  const readState = async (tenant: string, id: string, previous?: KeyState): Promise<KeyState | undefined> => {
    const key = await findKey(db, tenant, id);
    const restriction = storedRestriction(key?.restriction ?? null, previous?.restriction, readRestriction);
    return key && restriction !== 'refused' ? { ...key, restriction } : undefined;
  };
  const findState = createStateCache<KeyState>(readState, elapsed);
  async function find(tenant: string, { id, secret }: KeyText, address: string): Promise<KeyState> {
    const isKnown = lastUses.has(tenant, id);
    if (isKnown) {
      const state = await findState(tenant, id);
      if (state !== undefined && isSecretOf(secret, state.secretHash)) return state;
    }
    return await checkOnce(address, async () => {
      const cached = await findState(tenant, id);
      if (cached === undefined || isSecretOf(secret, cached.secretHash)) return cached;
      // The key may have been rotated since.
      const state = await readState(tenant, id, cached);
      return state !== undefined && isSecretOf(secret, state.secretHash) ? state : undefined;
    });
  }

  return async (tenant, text, address): Promise<Credentials> => {
    const key = readKey(text);
    if (key === undefined || !isTenantName(tenant)) throw new AccessTokenFault('invalid');
    const state = await find(tenant, key, address);
    if (state.expiresAt <= now()) throw new AccessTokenFault('expired');
    const { id } = key;
    lastUses.note(tenant, id, address);
    const { name, makerId, scopes, models, rate, user, restriction } = state;
    return { tenant, clientId: id, makerId, clientName: name, scopes, models, rate, user, restriction };
  };
}
