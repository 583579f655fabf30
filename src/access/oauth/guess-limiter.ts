import { isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { AnnalsError } from '../../core/errors.ts';
import { hashClientSecret, secretMatches, tenantOfClientId } from './client-identity.ts';
import { TokenError } from './token-error.ts';

/** `burst` failures at once, then one in `interval` milliseconds. */
export const guessLimits = {
  perClientAndAddress: { burst: 10, interval: 5_000 },
  perAddress: { burst: 100, interval: 500 },
};

const maxRemembered = 10_000;

export interface Attempt {
  address: string;
  /** Left out: it is a secret for one use, which names no client. */
  clientId?: string;
  clientSecret?: string;
}

export interface GuessLimiter {
  /**
   * Checks a client's secret unless too many checks have failed, and gives what `check` gives. `check` rejects with the
   * TokenError `invalid_client` where the secret is wrong; any other error counts as no guess. Throws
   * rate_limit_exceeded (429) with Retry-After.
   */
  limit<Result>(attempt: Attempt, check: () => Promise<Result>): Promise<Result>;
}

/**
 * Slows down the guessing of client secrets (contract: authentication). Secrets have 256 random bits, so guessing
 * leads nowhere at any speed. The limiter keeps guessing from loading the database, and never locks out a client:
 *
 * - Only failures count, by client id together with address, and by address alone. Nobody can lock out a client from
 *   elsewhere, and behind a shared address failures for one client do not count for another until there are many.
 * - An attempt counts as a failure from its beginning, so that attempts in parallel are counted too. Where such attempts
 *   use up the limit, further ones wait for their results.
 * - A client that got a token here before is known by the hash of its secret, and never waits, not even where
 *   somebody at its own address is guessing. A guesser gains nothing by that: 2^256 is out of reach in memory too.
 * - All of it is in this process and bounded: at most 10,000 counters of a kind, and a flood of addresses pushes out
 *   the oldest of them, which are the flood's own.
 */
export function createGuessLimiter(elapsed: () => number): GuessLimiter {
  const clientsAtAddress = createFailureCounter(guessLimits.perClientAndAddress, elapsed);
  const addresses = createFailureCounter(guessLimits.perAddress, elapsed);
  const knownSecrets = new LRUCache<string, Uint8Array>({ maxSize: maxRemembered, sizeCalculation: () => 1 });
  const underWay = new AttemptsUnderWay();

  function isKnown({ clientId, clientSecret }: Attempt): boolean {
    if (clientId === undefined || clientSecret === undefined) return false;
    const known = knownSecrets.get(clientId);
    return known !== undefined && secretMatches(clientSecret, known);
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

  function takeBack(client: string | undefined, address: string): void {
    if (client !== undefined) clientsAtAddress.add(client, -1);
    addresses.add(address, -1);
  }

  return {
    async limit(attempt, check) {
      if (isKnown(attempt)) return await check();
      const address = network(attempt.address);
      const client = clientAndAddress(attempt);
      for (let wait = begin(client, address); wait > 0; wait = begin(client, address)) {
        const next = underWay.nextEnd(address);
        if (next === undefined) throw tooManyGuesses(wait);
        await next;
        if (isKnown(attempt)) return await check();
      }
      underWay.begin(address);
      try {
        const result = await check();
        const { clientId, clientSecret } = attempt;
        if (clientId !== undefined && clientSecret !== undefined) {
          knownSecrets.set(clientId, hashClientSecret(clientSecret));
        }
        takeBack(client, address);
        return result;
      } catch (error) {
        if (!(error instanceof TokenError && error.code === 'invalid_client')) takeBack(client, address);
        throw error;
      } finally {
        underWay.end(address);
      }
    },
  };
}

function tooManyGuesses(wait: number): AnnalsError {
  return new AnnalsError('rate_limit_exceeded', 'Too many failed attempts to authenticate.', {
    headers: { 'Retry-After': String(Math.ceil(wait / 1000)) },
  });
}

/** The attempts of each address whose results are not known yet. */
class AttemptsUnderWay {
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

  /** Resolves once one of them has ended; undefined where there is none. */
  nextEnd(address: string): Promise<void> | undefined {
    return this.#ofAddress.get(address)?.nextEnd.promise;
  }
}

/** Undefined where no client can have the id: it is no guess, and it may be too long to keep. */
function clientAndAddress({ clientId, address }: Attempt): string | undefined {
  return clientId === undefined || tenantOfClientId(clientId) === undefined
    ? undefined
    : `${clientId} ${network(address)}`;
}

/** The part of an address that one subscriber has: of IPv6 the first 64 bits. */
function network(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [left = '', right = ''] = address.split('::');
  const head = left.split(':').filter(Boolean);
  const tail = right.split(':').filter(Boolean);
  const zeros = address.includes('::') ? Array<string>(8 - head.length - tail.length).fill('0') : [];
  return [...head, ...zeros, ...tail].slice(0, 4).join(':');
}

function createFailureCounter({ burst, interval }: { burst: number; interval: number }, elapsed: () => number) {
  // For each key the moment from which its failures do not count any more.
  const clearedAt = new LRUCache<string, number>({ maxSize: maxRemembered, sizeCalculation: () => 1 });
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
