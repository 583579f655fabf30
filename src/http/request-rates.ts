import { sql } from 'kysely';
import { AnnalsError } from '../core/errors.ts';
import { within } from '../core/fairness/deadline.ts';
import type { Database } from '../postgres/database.ts';
import type { Credentials } from './credentials.ts';
import type { HttpServer } from './http-server-type.ts';

/** The rate of a tenant's key, or of the tenant. */
interface RequestRate {
  readonly tenant: string;
  /** Undefined: all requests of the tenant. */
  readonly key?: string;
  /** Requests a second. */
  readonly rate: number;
}

/** Takes up to `portion` tokens from a rate's bucket; `seconds` until the next token if it is empty. */
export type TakePortion = (rate: RequestRate, portion: number) => Promise<{ granted: number; seconds: number }>;

interface RequestRatesOptions {
  /** Requests a second of a tenant; undefined: unlimited. */
  tenantRate: number | undefined;
  take: TakePortion;
  onUnreachable: (error: unknown) => void;
  /** A monotonic clock in milliseconds. */
  elapsed: () => number;
}

/** Milliseconds of a rate whose tokens a process prefetches, and for which they are valid. */
export const portionTime = 100;

/** Milliseconds that a request waits for the database, and before the next attempt after a failure. */
const maxWait = 1_000;

/** Minimum milliseconds before an empty bucket is queried again. */
const minRest = 25;

/** Prefetched tokens of a rate. */
interface Portion {
  left: number;
  /** The tokens of the last portion. */
  size: number;
  until: number;
  /** No query before: the bucket is empty, or the database unreachable. */
  restUntil: number;
  isReachable: boolean;
  taking: Promise<void> | undefined;
}

/** Limits requests of tenants and keys by rates that hold over all processes. */
export class RequestRates {
  readonly #options: RequestRatesOptions;
  readonly #elapsed: () => number;
  readonly #portions = new Map<string, Portion>();

  constructor(options: RequestRatesOptions) {
    this.#options = options;
    this.#elapsed = options.elapsed;
  }

  /** The rates of a request. The key's first, so that a refusal takes nothing from the tenant. */
  of({ tenant, clientId: key, rate }: Pick<Credentials, 'tenant' | 'clientId' | 'rate'>): RequestRate[] {
    const { tenantRate } = this.#options;
    return [
      ...(rate === undefined ? [] : [{ tenant, key, rate }]),
      ...(tenantRate === undefined ? [] : [{ tenant, rate: tenantRate }]),
    ];
  }

  /** Takes a prefetched token, if there is one. */
  #takeToken(of: RequestRate): boolean {
    const portion = this.#portions.get(nameOf(of));
    if (portion === undefined || portion.left === 0 || this.#elapsed() > portion.until) return false;
    portion.left -= 1;
    return true;
  }

  /** Takes a prefetched token, or waits for the next portion. Rejects with rate_limit_exceeded (429). */
  async admit(of: RequestRate): Promise<void> {
    const portion = this.#portionOf(of);
    while (!this.#takeToken(of)) {
      if (portion.taking === undefined) {
        if (portion.restUntil > this.#elapsed()) this.#refuseOrRenew(of, portion);
        else portion.taking = this.#take(of, portion);
      }
      await portion.taking;
    }
  }

  #portionOf(of: RequestRate): Portion {
    const size = portionSize(of);
    const empty = { left: 0, size, until: 0, restUntil: 0, isReachable: true, taking: undefined };
    return this.#portions.getOrInsert(nameOf(of), empty);
  }

  async #take(of: RequestRate, portion: Portion): Promise<void> {
    const begun = this.#elapsed();
    try {
      const { granted, seconds } = await within(maxWait, this.#options.take(of, portionSize(of)));
      const now = this.#elapsed();
      portion.isReachable = true;
      // Portions expire, so that they never add up to more than the rate; waiting requests still get this one.
      this.#grant(portion, granted, Math.max(begun + portionTime, now + 10));
      if (granted < portionSize(of)) portion.restUntil = now + Math.max(minRest, seconds * 1000);
    } catch (error) {
      this.#options.onUnreachable(error);
      portion.isReachable = false;
      portion.restUntil = this.#elapsed() + maxWait;
    } finally {
      portion.taking = undefined;
    }
  }

  /** While the database is unreachable, the last portion is renewed each time it expires. */
  #refuseOrRenew(of: RequestRate, portion: Portion): void {
    const now = this.#elapsed();
    if (portion.isReachable) throw refusal(of, portion.restUntil - now);
    if (portion.until > now) throw refusal(of, portion.until - now);
    this.#grant(portion, portion.size, now + portionTime);
  }

  #grant(portion: Portion, granted: number, until: number): void {
    portion.left = granted;
    if (granted > 0) portion.size = granted;
    portion.until = until;
  }
}

function nameOf({ tenant, key = '' }: RequestRate): string {
  return `${tenant} ${key}`;
}

function portionSize({ rate }: RequestRate): number {
  return Math.max(1, Math.floor((rate * portionTime) / 1000));
}

function refusal({ key, rate }: RequestRate, wait: number): AnnalsError {
  const who = key === undefined ? 'A tenant' : 'This key';
  const requests = rate === 1 ? '1 request' : `${rate} requests`;
  return new AnnalsError('rate_limit_exceeded', `${who} can send at most ${requests} a second.`, {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil(wait / 1000))) },
  });
}

/** Refuses requests beyond a rate of their key or tenant with 429. Call it after the hook that checks the token. */
export function limitRates(app: HttpServer, rates: RequestRates): void {
  async function admit(limits: readonly RequestRate[]): Promise<void> {
    for (const limit of limits) await rates.admit(limit);
  }

  app.addHook('onRequest', ({ verifiedCredentials }, _reply, done) => {
    const limits = verifiedCredentials === null ? [] : rates.of(verifiedCredentials);
    if (limits.length === 0) done();
    else admit(limits).then(() => done(), done);
  });
}

/** Takes portions from the buckets in the database, which all processes share. */
export function createTakePortion(db: Database): TakePortion {
  return async ({ tenant, key = '', rate }, portion) => {
    const { rows } = await sql<{ granted: number; seconds: number }>`
      select granted, seconds
        from tenant_rate_take(${tenant}, ${key}, ${rate}::double precision, ${portion}::integer)
    `.execute(db);
    const [row] = rows;
    if (row === undefined) throw new Error('tenant_rate_take returned no row');
    return row;
  };
}
