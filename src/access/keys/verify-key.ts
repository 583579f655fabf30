import { LRUCache } from 'lru-cache';
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
import { createStateCache } from '../state-cache.ts';
import { findKey, type KeyRecord, noteUse } from './key-store.ts';
import { isSecretOf, readKey } from './key-text.ts';

type KeyState = Omit<KeyRecord, 'restriction'> & { readonly restriction: Restriction | undefined };

/** Milliseconds between updates of a key's last use. */
const useUpdateInterval = 60_000;
const maxKeys = 10_000;

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
  onError: (error: unknown) => void;
}): VerifyKey {
  const { db, readRestriction, checkOnce, now, elapsed, onError } = options;
  const findState = createStateCache<KeyState>(async (tenant, id, previous) => {
    const key = await findKey(db, tenant, id);
    return key && { ...key, restriction: storedRestriction(key.restriction, previous?.restriction, readRestriction) };
  }, elapsed);
  /** Keys verified in this process, with the last update of their use. */
  const lastUses = new LRUCache<string, { notedAt: number }>({ maxSize: maxKeys, sizeCalculation: () => 1 });

  async function find(tenant: string, id: string, secret: string): Promise<KeyState | undefined> {
    const state = await findState(tenant, id);
    return state !== undefined && isSecretOf(secret, state.secretHash) ? state : undefined;
  }

  function note(tenant: string, id: string): void {
    const name = `${tenant} ${id}`;
    const notedAt = lastUses.get(name)?.notedAt;
    if (notedAt !== undefined && elapsed() - notedAt < useUpdateInterval) return;
    lastUses.set(name, { notedAt: elapsed() });
    noteUse(db, tenant, id).catch(onError);
  }

  return async (tenant, text, address): Promise<Credentials> => {
    const key = readKey(text);
    if (key === undefined || !isTenantName(tenant)) throw new AccessTokenFault('invalid');
    const { id, secret } = key;
    const state = lastUses.has(`${tenant} ${id}`)
      ? await find(tenant, id, secret)
      : await checkOnce(address, () => find(tenant, id, secret));
    if (state === undefined) throw new AccessTokenFault('invalid');
    if (state.expiresAt <= now()) throw new AccessTokenFault('expired');
    note(tenant, id);
    const { name, makerId, scopes, models, rate, restriction } = state;
    return { tenant, clientId: id, makerId, clientName: name, scopes, models, rate, restriction };
  };
}
