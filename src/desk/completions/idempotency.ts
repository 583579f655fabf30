import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import { threaded } from '../../core/fairness/threads.ts';
import { doWork } from '../../core/fairness/work.ts';
import { canonicalJson } from '../../core/json/canonical.ts';
import { defaultLease, keepLease } from '../../core/repeat.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database } from '../../postgres/database.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import {
  claimRequest,
  dropExpiredRequests,
  extendRequest,
  finishRequest,
  type RequestName,
  readRequest,
  type StoredRequest,
} from './idempotent-request-store.ts';

/** Idempotent model calls (contract: completions, Idempotency-Key). */
export interface Idempotency {
  /**
   * Runs the work once per key of a client. A repeat with the same body waits for the first request, or gets its
   * outcome, stored as JSON. The signal cancels the wait, never the work.
   */
  once<Outcome extends object>(
    request: IdempotentRequest,
    work: () => Promise<Outcome>,
    signal: AbortSignal,
  ): Promise<Outcome>;
  upkeep(findTenants: FindTenants): Promise<void>;
  /** Waits for running work. */
  close(): Promise<void>;
}

export interface IdempotentRequest {
  tenant: string;
  clientId: string;
  key: string;
  /** JSON text. */
  bodyText: string;
}

interface StoredFailure {
  error: Pick<AnnalsError, 'type' | 'message' | 'details' | 'headers'> & Partial<Pick<AnnalsError, 'code' | 'passed'>>;
}

// Milliseconds. A process that has not extended its lease is dead, and a repeat starts a new attempt.
const lease = defaultLease.length;
const successMemory = 24 * 60 * 60 * 1_000;
// Milliseconds, enough for every waiting request to read the failure.
const failureMemory = 60_000;
const minPause = 50;
const maxPause = 250;

export function createIdempotency(options: { db: Database; sealer: Sealer; logger: FastifyBaseLogger }): Idempotency {
  const { db, sealer, logger } = options;
  const underWay = new Set<Promise<unknown>>();

  async function run<Outcome extends object>(
    name: RequestName,
    attempt: string,
    work: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const endLease = keepLease(() => extendRequest(db, name, attempt, lease), { onError: warn });
    try {
      const outcome = await work();
      await finish(name, attempt, { state: 'succeeded', outcome, memory: successMemory }).catch(warn);
      return outcome;
    } catch (error) {
      const outcome: StoredFailure = { error: error instanceof AnnalsError ? storable(error) : internal };
      await finish(name, attempt, { state: 'failed', outcome, memory: failureMemory }).catch(warn);
      throw error;
    } finally {
      endLease();
    }
  }

  async function finish(
    name: RequestName,
    attempt: string,
    { outcome, ...ended }: { state: 'succeeded' | 'failed'; outcome: object; memory: number },
  ): Promise<void> {
    const plaintext = Buffer.from(JSON.stringify(outcome), 'utf8');
    await finishRequest(db, name, attempt, { ...ended, outcome: sealer.seal(plaintext, purposeOf(name, attempt)) });
  }

  function outcomeOf<Outcome>(
    name: RequestName,
    { attempt, outcome }: StoredRequest,
  ): Outcome | StoredFailure | undefined {
    const plaintext = outcome === null ? undefined : sealer.open(outcome, purposeOf(name, attempt));
    return plaintext && JSON.parse(Buffer.from(plaintext).toString('utf8'));
  }

  function warn(error: unknown): void {
    logger.warn({ err: error }, 'the outcome of an idempotent request could not be stored');
  }

  return {
    async once<Outcome extends object>(
      { tenant, clientId, key, bodyText }: IdempotentRequest,
      work: () => Promise<Outcome>,
      signal: AbortSignal,
    ): Promise<Outcome> {
      const name: RequestName = { tenant, clientId, keyHash: sha256(key) };
      const fingerprint = Buffer.from(await fingerprintOf(bodyText));
      // A request that arrived during an attempt shares its failure. A later one starts a new attempt.
      let met: string | undefined;
      for (let pause = minPause; ; pause = Math.min(maxPause, pause * 1.5)) {
        const stored = met === undefined ? undefined : await readRequest(db, name);
        if (stored === undefined || stored.expired) {
          const attempt = await claimRequest(db, name, fingerprint, lease);
          if (attempt !== undefined) {
            // Continues after its client has disconnected, because a repeat can ask for the result.
            const running = doWork({ tenant, writes: true }, () => run(name, attempt, work));
            underWay.add(running);
            running.catch(() => {}).finally(() => underWay.delete(running));
            return await running;
          }
        }
        const current = stored ?? (await readRequest(db, name));
        if (current === undefined || current.expired) continue;
        if (!Buffer.from(current.fingerprint).equals(fingerprint)) throw otherBody();
        met = current.attempt;
        const outcome = outcomeOf<Outcome>(name, current);
        if (current.state !== 'running' && outcome === undefined) {
          throw new Error('no key of ANNALS_SECRET_KEY opens the stored outcome of an idempotent request');
        }
        if (outcome !== undefined) {
          if ('error' in outcome) throw failureOf(outcome);
          return outcome;
        }
        await sleep(pause, undefined, { signal });
      }
    },

    upkeep: (findTenants) => dropExpiredRequests(db, findTenants),

    async close() {
      await Promise.allSettled([...underWay]);
    },
  };
}

/** Binds an outcome to its request and attempt, so that it cannot answer another. */
function purposeOf({ tenant, clientId, keyHash }: RequestName, attempt: string): string {
  return `completion outcome ${tenant} ${clientId} ${Buffer.from(keyHash).toString('hex')} ${attempt}`;
}

export const sealedOutcomes: SealedColumn = {
  table: 'completion_request',
  column: 'outcome',
  keys: ['tenant', 'client_id', 'key_hash'],
  bound: ['attempt'],
  purposeOf: ({ tenant, client_id: clientId, key_hash: keyHash, attempt }) => {
    if (!(keyHash instanceof Uint8Array)) throw new Error('the hash of an Idempotency-Key is no bytes');
    return purposeOf({ tenant: String(tenant), clientId: String(clientId), keyHash }, String(attempt));
  },
};

function failureOf({ error: { type, message, ...options } }: StoredFailure): AnnalsError {
  return new AnnalsError(type, message, options);
}

const internal: StoredFailure['error'] = {
  type: 'internal_service_error',
  message: 'An internal error occurred.',
  details: [],
  headers: {},
};

function storable({ type, message, details, headers, code, passed }: AnnalsError): StoredFailure['error'] {
  return { type, message, details, headers, code, passed };
}

function otherBody(): AnnalsError {
  return new AnnalsError('conflict_resource', 'The Idempotency-Key was used with another body.', {
    details: [{ field: 'Idempotency-Key', message: 'belongs to another request' }],
  });
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

/** The hash of a body, equal for bodies with equal JSON values. */
const fingerprintOf = threaded(
  import.meta.url,
  'fingerprintOf',
  (bodyText: string): Uint8Array => sha256(canonicalJson(JSON.parse(bodyText))),
);
