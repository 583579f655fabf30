import { setTimeout as delay } from 'node:timers/promises';
import type { JWK } from 'jose';
import type { Database, DatabaseTransaction } from '../db/database.ts';
import type { Sealer } from '../sealing.ts';
import { accessTokenLifetime } from './access-token.ts';
import { generateSigningKey, openSigningKey, type SigningKey } from './signing-key.ts';
import {
  deleteSigningKeys,
  insertSigningKey,
  readSigningKeys,
  retireSigningKeys,
  whileNoOtherMakesKeys,
} from './signing-key-store.ts';

const day = 24 * 60 * 60 * 1000;
/** A key signs for 30 days; then the first process that has to sign makes the next one. */
const signingTime = 30 * day;
/** It verifies on until the last token it signed has expired, and an hour more for clocks that disagree. */
const overlap = accessTokenLifetime * 1000 + 60 * 60 * 1000;

/** How old the keys at hand may be when something is signed or published, and when something is verified. */
const freshForSigning = 5_000;
const freshForVerifying = 60_000;
/** Tokens with made-up key ids cause at most one look into the database in this time (milliseconds). */
const leastTimeBetweenLoads = 250;

export interface SigningKeys {
  /** The key to sign with; made where there is none yet or the last one has had its time. */
  toSign(): Promise<SigningKey>;
  /** The key of that id. One not seen before is looked for in the database: another process may have made it. */
  toVerify(kid: string): SigningKey | undefined | Promise<SigningKey | undefined>;
  /** Whether tokens signed with that key still hold, by what was last read. Keeps what is known from growing old. */
  holds(kid: string): boolean;
  published(): Promise<JWK[]>;
}

export interface SigningKeysOptions {
  db: Database;
  sealer: Sealer;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Milliseconds of a clock that never steps back. */
  elapsed: () => number;
  /** Told where none of the secret keys opens a stored key: its tokens are not accepted here. */
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
    await loadOnce(Math.max(0, leastTimeBetweenLoads - (elapsed() - loadedAt)));
    const key = keys.get(kid);
    return verifies(key) ? key : undefined;
  }

  async function toSign(): Promise<SigningKey> {
    await loadUnlessYoungerThan(freshForSigning);
    const key = current();
    if (key !== undefined) return key;
    await whileNoOtherMakesKeys(db, async (transaction) => {
      const stored = await readSigningKeys(transaction, new Date(now()));
      const opened = await Promise.all(stored.map((candidate) => openSigningKey(sealer, candidate)));
      if (opened.every((candidate) => candidate === undefined)) await makeKey(transaction, sealer, now());
    });
    await load();
    const made = current();
    if (made === undefined) throw new Error('The signing key that was just made is not there.');
    return made;
  }

  return {
    toSign,

    toVerify(kid) {
      const key = keys.get(kid);
      return verifies(key) ? key : lookFor(kid);
    },

    holds(kid) {
      if (elapsed() - loadedAt > freshForVerifying) {
        // Meanwhile the keys at hand go on; a database that is away must not stop calls that need none.
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

/**
 * Makes a new signing key and retires the others, whose tokens hold until they expire. Every process signs with the
 * new one within 5 seconds. Answers its key id; `now` is milliseconds since 1970.
 */
export async function rotateSigningKey(db: Database, sealer: Sealer, now: number): Promise<string> {
  return await whileNoOtherMakesKeys(db, async (transaction) => {
    await retireSigningKeys(transaction, new Date(now));
    return await makeKey(transaction, sealer, now);
  });
}

async function makeKey(transaction: DatabaseTransaction, sealer: Sealer, now: number): Promise<string> {
  const key = await generateSigningKey(sealer, new Date(now), new Date(now + signingTime));
  await insertSigningKey(transaction, key);
  await deleteSigningKeys(transaction, new Date(now - overlap));
  return key.kid;
}
