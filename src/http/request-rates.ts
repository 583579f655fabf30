import { sql } from 'kysely';
import { AnnalsError } from '../core/errors.ts';
import { within } from '../core/fairness/deadline.ts';
import type { Database } from '../postgres/database.ts';
import type { Credentials } from './credentials.ts';
import type { HttpServer } from './http-server-type.ts';

/** The requests a second of one of a tenant's keys, or of all of the tenant. */
export interface RequestRate {
  readonly tenant: string;
  /** Left out: all requests of the tenant. */
  readonly key?: string;
  /** Requests a second. */
  readonly rate: number;
}

/** Takes up to `portion` requests from the bucket of the rate; `seconds` is how long until there is one, if there was none. */
export type TakePortion = (of: RequestRate, portion: number) => Promise<{ granted: number; seconds: number }>;

export interface RequestRatesOptions {
  /** Requests a second of a tenant; undefined: as many as come. */
  tenantRate: number | undefined;
  take: TakePortion;
  onUnreachable: (error: unknown) => void;
  /** Milliseconds since any moment. */
  elapsed: () => number;
}

/** How much of a rate a process takes ahead, and how long that counts (milliseconds). */
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

/** Counts requests of tenants and of keys against rates that hold over all processes. */
export class RequestRates {
  readonly #options: RequestRatesOptions;
  readonly #elapsed: () => number;
  readonly #portions = new Map<string, Portion>();

  constructor(options: RequestRatesOptions) {
    this.#options = options;
    this.#elapsed = options.elapsed;
  }

  /** The rates that a request counts against. That of a key is the first: what it refuses takes nothing from the tenant. */
  of({ tenant, clientId: key, rate }: Pick<Credentials, 'tenant' | 'clientId' | 'rate'>): RequestRate[] {
    const { tenantRate } = this.#options;
    return [
      ...(rate === undefined ? [] : [{ tenant, key, rate }]),
      ...(tenantRate === undefined ? [] : [{ tenant, rate: tenantRate }]),
    ];
  }

  /** Whether the request is within what the process has taken ahead. */
  #hasPortion(of: RequestRate): boolean {
    const portion = this.#portions.get(nameOf(of));
    if (portion === undefined || portion.left === 0 || this.#elapsed() > portion.until) return false;
    portion.left -= 1;
    return true;
  }

  /** Takes of what the process has taken ahead, or waits for a further portion. Rejects with rate_limit_exceeded (429) where the rate is used. */
  async admit(of: RequestRate): Promise<void> {
    const portion = this.#portionOf(of);
    while (!this.#hasPortion(of)) {
      if (portion.taking === undefined) {
        if (portion.restUntil > this.#elapsed()) this.#refuseOrGoOn(of, portion);
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
      // Old portions must not add up to more than the rate. Requests that wait for this one get it all the same.
      this.#give(portion, granted, Math.max(begun + portionTime, now + 10));
      if (granted < portionSize(of)) portion.restUntil = now + Math.max(minRest, seconds * 1000);
    } catch (error) {
      this.#options.onUnreachable(error);
      portion.isReachable = false;
      portion.restUntil = this.#elapsed() + maxWait;
    } finally {
      portion.taking = undefined;
    }
  }

  /** While the database cannot be asked, the last portion is there again each time a portion's time is over. */
  #refuseOrGoOn(of: RequestRate, portion: Portion): void {
    const now = this.#elapsed();
    if (portion.isReachable) throw refusal(of, portion.restUntil - now);
    if (portion.until > now) throw refusal(of, portion.until - now);
    this.#give(portion, portion.size, now + portionTime);
  }

  #give(portion: Portion, granted: number, until: number): void {
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

/** Refuses requests beyond a rate of their key or tenant with 429. To be called after the hook that checks the token. */
export function limitRates(app: HttpServer, rates: RequestRates): void {
  async function admit(wanted: readonly RequestRate[]): Promise<void> {
    for (const of of wanted) await rates.admit(of);
  }

  app.addHook('onRequest', ({ verifiedCredentials }, _reply, done) => {
    const wanted = verifiedCredentials === null ? [] : rates.of(verifiedCredentials);
    if (wanted.length === 0) done();
    else admit(wanted).then(() => done(), done);
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
    if (row === undefined) throw new Error('tenant_rate_take gave no row');
    return row;
  };
}
