import { isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { AnnalsError } from '../../core/errors.ts';
import { hashClientSecret, secretMatches, tenantOfClientId } from './client-identity.ts';
import { TokenError } from './token-error.ts';

/** `burst` failures, then one per `interval` milliseconds. */
export const guessLimits = {
  perClientAndAddress: { burst: 10, interval: 5_000 },
  perAddress: { burst: 100, interval: 500 },
};

const maxEntries = 10_000;

export interface Attempt {
  address: string;
  /** Undefined: a one-time secret, which names no client. */
  clientId?: string;
  clientSecret?: string;
}

export interface GuessLimiter {
  /**
   * Runs `check` and returns its result, unless too many checks have failed. `check` rejects with the TokenError
   * `invalid_client` for a wrong secret; other errors do not count as guesses. Throws rate_limit_exceeded (429) with
   * Retry-After.
   */
  limit<Result>(attempt: Attempt, check: () => Promise<Result>): Promise<Result>;
}

/**
 * Slows down the guessing of client secrets (contract: authentication). Their 256 random bits cannot be guessed: the
 * limiter protects the database from the attempts. It never locks out a client:
 *
 * - Only failures count, per client id and address, and per address. A client cannot be locked out from elsewhere,
 *   and behind a shared address failures for one client affect another only once there are many.
 * - An attempt counts as a failure until it succeeds, which includes parallel attempts. Where these use up the limit,
 *   further ones wait for their results.
 * - A client that got a token here before is recognized by the hash of its secret and never waits, even while its own
 *   address is guessing. Guessing gains nothing from that: 2^256 is out of reach in memory, too.
 * - State is per process and bounded to 10,000 counters of each kind. A flood of addresses evicts the oldest, which are
 *   its own.
 */
export function createGuessLimiter(elapsed: () => number): GuessLimiter {
  const clientsAtAddress = createFailureCounter(guessLimits.perClientAndAddress, elapsed);
  const addresses = createFailureCounter(guessLimits.perAddress, elapsed);
  const knownSecrets = new LRUCache<string, Uint8Array>({ maxSize: maxEntries, sizeCalculation: () => 1 });
  const pending = new PendingAttempts();

  function isKnown({ clientId, clientSecret }: Attempt): boolean {
    if (clientId === undefined || clientSecret === undefined) return false;
    const secretHash = knownSecrets.get(clientId);
    return secretHash !== undefined && secretMatches(clientSecret, secretHash);
  }

  /** Counts a failure in advance, or returns the milliseconds to wait. */
  function begin(client: string | undefined, address: string): number {
    const wait = Math.max(
      client === undefined ? 0 : clientsAtAddress.timeToWait(client),
      addresses.timeToWait(address),
    );
    if (wait > 0) return wait;
    if (client !== undefined) clientsAtAddress.add(client, 1);
    addresses.add(address, 1);
    return 0;
  }

  function undoFailure(client: string | undefined, address: string): void {
    if (client !== undefined) clientsAtAddress.add(client, -1);
    addresses.add(address, -1);
  }

  return {
    async limit(attempt, check) {
      if (isKnown(attempt)) return await check();
      const address = network(attempt.address);
      const client = clientAndAddress(attempt);
      for (let wait = begin(client, address); wait > 0; wait = begin(client, address)) {
        const next = pending.nextEnd(address);
        if (next === undefined) throw tooManyGuesses(wait);
        await next;
        if (isKnown(attempt)) return await check();
      }
      pending.begin(address);
      try {
        const result = await check();
        const { clientId, clientSecret } = attempt;
        if (clientId !== undefined && clientSecret !== undefined) {
          knownSecrets.set(clientId, hashClientSecret(clientSecret));
        }
        undoFailure(client, address);
        return result;
      } catch (error) {
        if (!(error instanceof TokenError && error.code === 'invalid_client')) undoFailure(client, address);
        throw error;
      } finally {
        pending.end(address);
      }
    },
  };
}

function tooManyGuesses(wait: number): AnnalsError {
  return new AnnalsError('rate_limit_exceeded', 'Too many failed attempts to authenticate.', {
    headers: { 'Retry-After': String(Math.ceil(wait / 1000)) },
  });
}

/** The unresolved attempts of each address. */
class PendingAttempts {
  readonly #ofAddress = new Map<string, { count: number; nextEnd: PromiseWithResolvers<void> }>();

  begin(address: string): void {
    const none = () => ({ count: 0, nextEnd: Promise.withResolvers<void>() });
    this.#ofAddress.getOrInsertComputed(address, none).count += 1;
  }

  end(address: string): void {
    const attempts = this.#ofAddress.get(address);
    if (attempts === undefined) return;
    attempts.nextEnd.resolve();
    attempts.nextEnd = Promise.withResolvers();
    attempts.count -= 1;
    if (attempts.count === 0) this.#ofAddress.delete(address);
  }

  /** Resolves when one of them ends; undefined if there is none. */
  nextEnd(address: string): Promise<void> | undefined {
    return this.#ofAddress.get(address)?.nextEnd.promise;
  }
}

/** Undefined if no client can have the id: not a guess, and possibly too long to keep. */
function clientAndAddress({ clientId, address }: Attempt): string | undefined {
  return clientId === undefined || tenantOfClientId(clientId) === undefined
    ? undefined
    : `${clientId} ${network(address)}`;
}

/** The part of an address that one subscriber has: the first 64 bits of IPv6. */
function network(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [left = '', right = ''] = address.split('::');
  const head = left.split(':').filter(Boolean);
  const tail = right.split(':').filter(Boolean);
  const zeros = address.includes('::') ? Array<string>(8 - head.length - tail.length).fill('0') : [];
  return [...head, ...zeros, ...tail].slice(0, 4).join(':');
}

function createFailureCounter({ burst, interval }: { burst: number; interval: number }, elapsed: () => number) {
  // For each key, when its failures stop counting.
  const clearedAt = new LRUCache<string, number>({ maxSize: maxEntries, sizeCalculation: () => 1 });
  const tolerance = (burst - 1) * interval;
  return {
    timeToWait(key: string): number {
      return Math.max(0, (clearedAt.get(key) ?? 0) - tolerance - elapsed());
    },
    add(key: string, failures: 1 | -1): void {
      clearedAt.set(key, Math.max(clearedAt.get(key) ?? 0, elapsed()) + failures * interval);
    },
  };
}
