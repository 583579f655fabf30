import { isIPv6 } from 'node:net';
import { createBoundedCache } from './bounded-cache.ts';
import { hashClientSecret, secretMatches, tenantOfClientId } from './client-identity.ts';

/** `burst` failures at once, then one in `interval` milliseconds. */
const perClientAndAddress = { burst: 10, interval: 5_000 };
const perAddress = { burst: 100, interval: 500 };

const mostRemembered = 10_000;

export interface Attempt {
  clientId: string;
  clientSecret: string;
  address: string;
}

export interface GuessLimiter {
  /** Whole seconds until this attempt may be made; 0 where it may be made now. */
  secondsToWait(attempt: Attempt): number;
  failed(attempt: Attempt): void;
  succeeded(attempt: Attempt): void;
}

/**
 * Slows down the guessing of client secrets (contract: authentication). Secrets have 256 random bits, so guessing
 * leads nowhere at any speed; what has to be prevented is that it keeps the database busy, and that the cure locks
 * out clients. Hence:
 *
 * - Only failures count, by client id together with address, and by address alone. Nobody can lock out a client from
 *   elsewhere, and behind a shared address failures for one client do not count for another until there are many.
 * - A client that got a token here before is known by the hash of its secret, and never waits, not even where
 *   somebody at its own address is guessing. A guesser gains nothing by that: 2^256 is out of reach in memory too.
 * - All of it is in this process and bounded: at most 10,000 counters of a kind, and a flood of addresses pushes out
 *   the oldest of them, which are the flood's own.
 */
export function createGuessLimiter(elapsed: () => number): GuessLimiter {
  const clientsAtAddress = createFailureCounter(perClientAndAddress, elapsed);
  const addresses = createFailureCounter(perAddress, elapsed);
  const knownSecrets = createBoundedCache<Uint8Array>(mostRemembered);

  return {
    secondsToWait(attempt) {
      const known = knownSecrets.get(attempt.clientId);
      if (known !== undefined && secretMatches(attempt.clientSecret, known)) return 0;
      const key = clientAndAddress(attempt);
      const wait = Math.max(
        key === undefined ? 0 : clientsAtAddress.timeToWait(key),
        addresses.timeToWait(network(attempt.address)),
      );
      return Math.ceil(wait / 1000);
    },
    failed(attempt) {
      const key = clientAndAddress(attempt);
      if (key !== undefined) clientsAtAddress.count(key);
      addresses.count(network(attempt.address));
    },
    succeeded({ clientId, clientSecret }) {
      knownSecrets.set(clientId, hashClientSecret(clientSecret));
    },
  };
}

/** What cannot be the id of a client is no guess at one, and may be as long as a body: it is not kept. */
function clientAndAddress({ clientId, address }: Attempt): string | undefined {
  return tenantOfClientId(clientId) === undefined ? undefined : `${clientId} ${network(address)}`;
}

/** One subscriber of IPv6 has at least a /64 to draw addresses from. */
function network(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [left = '', right = ''] = address.split('::');
  const head = left.split(':').filter(Boolean);
  const tail = right.split(':').filter(Boolean);
  const zeros = address.includes('::') ? Array<string>(8 - head.length - tail.length).fill('0') : [];
  return [...head, ...zeros, ...tail].slice(0, 4).join(':');
}

function createFailureCounter({ burst, interval }: { burst: number; interval: number }, elapsed: () => number) {
  // For every key the moment at which all its failures will have been worked off.
  const clearedAt = createBoundedCache<number>(mostRemembered);
  const tolerance = (burst - 1) * interval;
  return {
    timeToWait(key: string): number {
      return Math.max(0, (clearedAt.get(key) ?? 0) - tolerance - elapsed());
    },
    count(key: string): void {
      clearedAt.set(key, Math.max(clearedAt.get(key) ?? 0, elapsed()) + interval);
    },
  };
}
