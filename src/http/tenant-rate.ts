import { sql } from 'kysely';
import { within } from '../core/concurrency/deadline.ts';
import { AnnalsError } from '../core/errors.ts';
import type { Database } from '../postgres/database.ts';
import type { HttpServer } from './http-server-type.ts';

/** Takes up to `portion` requests from the tenant's bucket; `seconds` is how long until there is one, if there was none. */
export type TakePortion = (tenant: string, portion: number) => Promise<{ granted: number; seconds: number }>;

export interface TenantRateOptions {
  /** Requests a second. */
  rate: number;
  take: TakePortion;
  onUnreachable: (error: unknown) => void;
  /** Milliseconds since any moment. */
  elapsed: () => number;
}

/** How much of the rate a process takes ahead, and how long that counts (milliseconds). */
export const portionTime = 100;

/** How long a request waits for the database, and how long nobody asks it again afterwards (milliseconds). */
const maxWait = 1_000;

/** How long a bucket that is empty is not asked again, at least (milliseconds). */
const minRest = 25;

interface Portion {
  left: number;
  /** What the last one had when the process got it. */
  size: number;
  until: number;
  /** Until when nobody asks the database: it has nothing left, or cannot be asked. */
  restUntil: number;
  isReachable: boolean;
  taking: Promise<void> | undefined;
}

/** Counts requests of tenants against a rate that holds over all processes. */
export class TenantRate {
  readonly #options: TenantRateOptions;
  readonly #elapsed: () => number;
  readonly #portionSize: number;
  readonly #portions = new Map<string, Portion>();

  constructor(options: TenantRateOptions) {
    this.#options = options;
    this.#elapsed = options.elapsed;
    this.#portionSize = Math.max(1, Math.floor((options.rate * portionTime) / 1000));
  }

  /** Whether the request is within what the process has taken ahead. */
  hasPortion(tenant: string): boolean {
    const portion = this.#portions.get(tenant);
    if (portion === undefined || portion.left === 0 || this.#elapsed() > portion.until) return false;
    portion.left -= 1;
    return true;
  }

  /** Waits for a further portion. Rejects with rate_limit_exceeded (429) where the tenant has used its rate. */
  async admit(tenant: string): Promise<void> {
    const portion = this.#portionOf(tenant);
    while (!this.hasPortion(tenant)) {
      if (portion.taking === undefined) {
        if (portion.restUntil > this.#elapsed()) this.#refuseOrGoOn(portion);
        else portion.taking = this.#take(tenant, portion);
      }
      await portion.taking;
    }
  }

  #portionOf(tenant: string): Portion {
    const known = this.#portions.get(tenant);
    if (known !== undefined) return known;
    const portion = { left: 0, size: this.#portionSize, until: 0, restUntil: 0, isReachable: true, taking: undefined };
    this.#portions.set(tenant, portion);
    return portion;
  }

  async #take(tenant: string, portion: Portion): Promise<void> {
    const begun = this.#elapsed();
    try {
      const { granted, seconds } = await within(maxWait, this.#options.take(tenant, this.#portionSize));
      const now = this.#elapsed();
      portion.isReachable = true;
      // Old portions must not add up to more than the rate. Requests that wait for this one get it all the same.
      this.#give(portion, granted, Math.max(begun + portionTime, now + 10));
      if (granted < this.#portionSize) portion.restUntil = now + Math.max(minRest, seconds * 1000);
    } catch (error) {
      this.#options.onUnreachable(error);
      portion.isReachable = false;
      portion.restUntil = this.#elapsed() + maxWait;
    } finally {
      portion.taking = undefined;
    }
  }

  /** While the database cannot be asked, a tenant gets its last portion again each time a portion's time is over. */
  #refuseOrGoOn(portion: Portion): void {
    const now = this.#elapsed();
    if (portion.isReachable) throw this.#refusal(portion.restUntil - now);
    if (portion.until > now) throw this.#refusal(portion.until - now);
    this.#give(portion, portion.size, now + portionTime);
  }

  #give(portion: Portion, granted: number, until: number): void {
    portion.left = granted;
    if (granted > 0) portion.size = granted;
    portion.until = until;
  }

  #refusal(wait: number): AnnalsError {
    const { rate } = this.#options;
    const requests = rate === 1 ? '1 request' : `${rate} requests`;
    return new AnnalsError('rate_limit_exceeded', `A tenant can send at most ${requests} a second.`, {
      headers: { 'Retry-After': String(Math.max(1, Math.ceil(wait / 1000))) },
    });
  }
}

/** Refuses requests of a tenant beyond its rate with 429. To be called after the hook that checks the token. */
export function limitRate(app: HttpServer, rate: TenantRate): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const tenant = request.verifiedCredentials?.tenant;
    if (tenant === undefined || rate.hasPortion(tenant)) done();
    else rate.admit(tenant).then(() => done(), done);
  });
}

/** Takes portions from the buckets in the database, which all processes share. `rate` is in requests a second. */
export function createTakePortion(db: Database, rate: number): TakePortion {
  return async (tenant, portion) => {
    const { rows } = await sql<{ granted: number; seconds: number }>`
      select granted, seconds from tenant_rate_take(${tenant}, ${rate}::double precision, ${portion}::integer)
    `.execute(db);
    const [row] = rows;
    if (row === undefined) throw new Error('tenant_rate_take gave no row');
    return row;
  };
}
