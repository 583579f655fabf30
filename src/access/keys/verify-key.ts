import { LRUCache } from 'lru-cache';
import { AccessTokenFault, type Credentials, type VerifyKey } from '../../http/credentials.ts';
import type { ReadRestriction, Restriction } from '../../http/restriction.ts';
import { isTenantName } from '../../http/tenant-name.ts';
import type { Database } from '../../postgres/database.ts';
import { createKnownStates } from '../known-states.ts';
import type { TryOnce } from '../oauth/check-secret.ts';
import { storedRestriction } from '../oauth/client-states.ts';
import { findKey, type KeyRecord, noteUse } from './key-store.ts';
import { isSecretOf, readKey } from './key-text.ts';

type KeyState = Omit<KeyRecord, 'restriction'> & { readonly restriction: Restriction | undefined };

/** Milliseconds between two notes that a key was used. */
export const usedEvery = 60_000;
const maxKeys = 10_000;

/**
 * Checks keys. One that was right before costs a hash and a look-up in memory; a revocation takes effect within 5 seconds. Wrong ones count
 * together with wrong secrets of clients.
 */
export function createKeyVerifier(options: {
  db: Database;
  readRestriction: ReadRestriction;
  tryOnce: TryOnce;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Milliseconds of a clock that never steps back. */
  elapsed: () => number;
  onError: (error: unknown) => void;
}): VerifyKey {
  const { db, readRestriction, tryOnce, now, elapsed, onError } = options;
  const findState = createKnownStates<KeyState>(async (tenant, id, known) => {
    const key = await findKey(db, tenant, id);
    return key && { ...key, restriction: storedRestriction(key.restriction, known?.restriction, readRestriction) };
  }, elapsed);
  /** Keys whose secrets were right in this process, and when their use was noted last. */
  const seen = new LRUCache<string, { notedAt: number }>({ maxSize: maxKeys, sizeCalculation: () => 1 });

  async function find(tenant: string, id: string, secret: string): Promise<KeyState | undefined> {
    const state = await findState(tenant, id);
    return state !== undefined && isSecretOf(secret, state.secretHash) ? state : undefined;
  }

  function note(tenant: string, id: string): void {
    const name = `${tenant} ${id}`;
    const notedAt = seen.get(name)?.notedAt;
    if (notedAt !== undefined && elapsed() - notedAt < usedEvery) return;
    seen.set(name, { notedAt: elapsed() });
    noteUse(db, tenant, id).catch(onError);
  }

  return async (tenant, text, address): Promise<Credentials> => {
    const key = readKey(text);
    if (key === undefined || !isTenantName(tenant)) throw new AccessTokenFault('invalid');
    const { id, secret } = key;
    const state = seen.has(`${tenant} ${id}`)
      ? await find(tenant, id, secret)
      : await tryOnce(address, () => find(tenant, id, secret));
    if (state === undefined) throw new AccessTokenFault('invalid');
    if (state.expiresAt <= now()) throw new AccessTokenFault('expired');
    note(tenant, id);
    const { name, makerId, scopes, models, rate, restriction } = state;
    return { tenant, clientId: id, makerId, clientName: name, scopes, models, rate, restriction };
  };
}
