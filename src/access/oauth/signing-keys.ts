import { setTimeout as delay } from 'node:timers/promises';
import type { JWK } from 'jose';
import type { Sealer } from '../../core/sealing.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { accessTokenLifetime } from './access-token.ts';
import { generateSigningKey, openSigningKey, type SigningKey } from './signing-key.ts';
import { deleteSigningKeys, insertSigningKey, readSigningKeys, withSigningKeyLock } from './signing-key-store.ts';

const day = 24 * 60 * 60 * 1000;
/** A key signs for 30 days. Then the first process that signs creates the next one. */
const signingTime = 30 * day;
/** A key verifies until its last token has expired, plus one hour of clock skew. */
const overlap = accessTokenLifetime * 1000 + 60 * 60 * 1000;

/** The max. age of cached keys to sign or publish, and to verify (milliseconds). */
const maxAgeForSigning = 5_000;
const maxAgeForVerifying = 60_000;
/** Tokens with made-up key ids cause at most one query per interval (milliseconds). */
const minTimeBetweenLoads = 250;

export interface SigningKeys {
  /** The key to sign with, created if there is none or the last one has retired. */
  toSign(): Promise<SigningKey>;
  /** The key with that id. Reads an unknown one from the database, because another process may have created it. */
  toVerify(kid: string): SigningKey | undefined | Promise<SigningKey | undefined>;
  /** Whether tokens of that key are valid, by the cached keys. Refreshes stale keys in the background. */
  holds(kid: string): boolean;
  published(): Promise<JWK[]>;
}

interface SigningKeysOptions {
  db: Database;
  sealer: Sealer;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number;
  /** Called if no secret key opens a stored key. This process refuses its tokens. */
  onUnreadableKey: (kid: string) => void;
}

export function createSigningKeys({ db, sealer, now, elapsed, onUnreadableKey }: SigningKeysOptions): SigningKeys {
  let keys = new Map<string, SigningKey>();
  let loadedAt = Number.NEGATIVE_INFINITY;
  let loading: Promise<void> | undefined;

  async function load(): Promise<void> {
    const startedAt = elapsed();
    const stored = await readSigningKeys(db, new Date(now() - overlap));
    const opened = await Promise.all(
      stored.map(async (key) => ({ kid: key.kid, key: await openSigningKey(sealer, key) })),
    );
    for (const { kid, key } of opened) if (key === undefined) onUnreadableKey(kid);
    keys = new Map(opened.flatMap(({ kid, key }) => (key === undefined ? [] : [[kid, key]])));
    loadedAt = startedAt;
  }

  function loadOnce(wait = 0): Promise<void> {
    loading ??= (wait > 0 ? delay(wait).then(load) : load()).finally(() => {
      loading = undefined;
    });
    return loading;
  }

  async function loadUnlessYoungerThan(age: number): Promise<void> {
    if (elapsed() - loadedAt > age) await loadOnce();
  }

  /** The newest key that has not retired. */
  function current(): SigningKey | undefined {
    return keys.values().find((key) => key.retiredAt > now());
  }

  function verifies(key: SigningKey | undefined): key is SigningKey {
    return key !== undefined && key.retiredAt + overlap > now();
  }

  async function lookFor(kid: string): Promise<SigningKey | undefined> {
    await loadOnce(Math.max(0, minTimeBetweenLoads - (elapsed() - loadedAt)));
    const key = keys.get(kid);
    return verifies(key) ? key : undefined;
  }

  async function toSign(): Promise<SigningKey> {
    await loadUnlessYoungerThan(maxAgeForSigning);
    const key = current();
    if (key !== undefined) return key;
    await withSigningKeyLock(db, async (transaction) => {
      const stored = await readSigningKeys(transaction, new Date(now()));
      const opened = await Promise.all(stored.map((candidate) => openSigningKey(sealer, candidate)));
      if (opened.every((candidate) => candidate === undefined)) await makeKey(transaction, sealer, now());
    });
    await load();
    const created = current();
    if (created === undefined) throw new Error('The inserted signing key cannot be read.');
    return created;
  }

  return {
    toSign,

    toVerify(kid) {
      const key = keys.get(kid);
      return verifies(key) ? key : lookFor(kid);
    },

    holds(kid) {
      if (elapsed() - loadedAt > maxAgeForVerifying) {
        // The cached keys stay in use: an unreachable database must not stop calls that do not need it.
        loadOnce().catch(() => {});
      }
      return verifies(keys.get(kid));
    },

    async published() {
      await toSign();
      return [...keys.values()].filter(verifies).map((key) => key.publicJwk);
    },
  };
}

async function makeKey(transaction: DatabaseTransaction, sealer: Sealer, now: number): Promise<void> {
  const key = await generateSigningKey(sealer, new Date(now), new Date(now + signingTime));
  await insertSigningKey(transaction, key);
  await deleteSigningKeys(transaction, new Date(now - overlap));
}
