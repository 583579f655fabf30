import { setFlagsFromString } from 'node:v8';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { type Release, Semaphore } from '../core/fairness/semaphore.ts';
import { Stop } from '../core/stop-signal.ts';
import { onClientGone } from './client-gone.ts';
import type { HttpServer } from './http-server-type.ts';

interface BodyLimits {
  /** Bytes of all bodies that are being read or processed; one tenant has at most half. */
  maxBytes: number;
  /** Bodies of many values that are processed at once; one tenant has at most half. */
  maxLargeBodies: number;
  /** Milliseconds that a body waits. */
  maxWait: number;
}

/** Of one process (contract: one tenant cannot stop another). */
export const defaultBodyLimits: BodyLimits = { maxBytes: 64 * 1024 * 1024, maxLargeBodies: 4, maxWait: 30_000 };

declare module 'fastify' {
  interface FastifyRequest {
    /** Replaces the body's reservation with one of so many bytes, once there is memory. */
    reserveBody: (bytes: number) => Promise<void>;
    /** Bytes reserved for the body. */
    reservedBytes: number;
    /**
     * Waits until a body of many values may be processed. It counts until the request is answered; for a call of a
     * provider, which may take minutes, until its body is validated.
     */
    admitLargeBody: () => Promise<void>;
    releaseLargeBody: Release | undefined;
  }
}

/** Leaves bodies of authorised requests unread until there is memory. Call it before routes are added. */
export function limitBodies(app: HttpServer, limits: BodyLimits = defaultBodyLimits): void {
  const shares = new BodyShares(limits);
  app.decorateRequest('admitLargeBody');
  app.decorateRequest('releaseLargeBody');
  app.decorateRequest('reserveBody');
  app.decorateRequest('reservedBytes', 0);
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const admitLargeBody = () => shares.admitLargeBody(request, reply);
    const reserveBody = (size: number) => shares.reserveBody(request, reply, size);
    request.admitLargeBody = admitLargeBody;
    request.reserveBody = reserveBody;
    const bytes = bytesToReserve(request);
    request.reservedBytes = bytes;
    // Oversized bodies are refused without being read.
    if (bytes === 0 || bytes > request.routeOptions.bodyLimit) done();
    else shares.admitBody(request, reply, bytes, done);
  });
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.releaseLargeBody !== undefined && request.routeOptions.config.work === 'calls')
      request.releaseLargeBody();
    done();
  });
}

/** The limits of bodies, for the process and each tenant. */
class BodyShares {
  readonly #limits: BodyLimits;
  readonly #bytes: Semaphore;
  readonly #largeBodies: Semaphore;
  readonly #reserved = new WeakMap<FastifyRequest, Release>();

  constructor(limits: BodyLimits) {
    this.#limits = limits;
    this.#bytes = new Semaphore({ places: limits.maxBytes, name: 'bytes of bodies' });
    this.#largeBodies = new Semaphore({ places: limits.maxLargeBodies, name: 'bodies of many values' });
  }

  /** Calls back synchronously if there is memory, so that most requests lose no time. */
  admitBody(request: FastifyRequest, reply: FastifyReply, bytes: number, done: (error?: Error) => void): void {
    const release = this.#bytes.tryAcquire(tenantOf(request), bytes);
    if (release !== undefined) {
      this.#reserved.set(request, release);
      holdUntilAnswered(reply, release);
      done();
      return;
    }
    this.#acquire(this.#bytes, request, reply, bytes).then(
      (acquired) => {
        this.#reserved.set(request, acquired);
        done();
      },
      (error: Error) => {
        // The body will not be read.
        reply.header('connection', 'close');
        done(error);
      },
    );
  }

  /** Releases its share before it waits, so that requests cannot deadlock. */
  async reserveBody(request: FastifyRequest, reply: FastifyReply, bytes: number): Promise<void> {
    this.#reserved.get(request)?.();
    this.#reserved.set(request, await this.#acquire(this.#bytes, request, reply, bytes));
  }

  async admitLargeBody(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const release = await this.#acquire(this.#largeBodies, request, reply, 1);
    const letHeapGrow = keepHeapSmall();
    holdUntilAnswered(reply, letHeapGrow);
    const releaseLargeBody = () => {
      release();
      letHeapGrow();
    };
    request.releaseLargeBody = releaseLargeBody;
  }

  async #acquire(share: Semaphore, request: FastifyRequest, reply: FastifyReply, places: number): Promise<Release> {
    const stop = new Stop();
    onClientGone(reply, (reason) => stop.abort(reason));
    const timer = setTimeout(() => stop.abort(this.#waitedTooLong()), this.#limits.maxWait);
    try {
      const release = await share.acquire(tenantOf(request), stop, places);
      holdUntilAnswered(reply, release);
      return release;
    } finally {
      clearTimeout(timer);
    }
  }

  #waitedTooLong(): AnnalsError {
    const { maxWait, maxBytes, maxLargeBodies } = this.#limits;
    return new AnnalsError(
      'service_unavailable',
      `The request body waited ${maxWait / 1000} s: the bodies in progress have at most ${maxBytes} bytes, and at ` +
        `most ${maxLargeBodies} of them have many values. One tenant has at most half of both.`,
      { headers: { 'Retry-After': '1' } },
    );
  }
}

function holdUntilAnswered(reply: FastifyReply, release: Release): void {
  if (reply.raw.closed) release();
  else reply.raw.once('close', release);
}

/** Requests for a token have no tenant yet, and share one tenant's limits. */
function tenantOf(request: FastifyRequest): string {
  return request.verifiedCredentials?.tenant ?? '';
}

/** JSON of changes is rarely compressed to less than a tenth. A body that turns out larger replaces its reservation. */
const expectedRatio = 10;

/** A chunked body has no length, so it reserves the limit of its operation. */
function bytesToReserve(request: FastifyRequest): number {
  const { headers } = request;
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return 0;
  // Fastify creates this object on each access.
  const { routeOptions } = request;
  const { bodyLimit } = routeOptions;
  const isCompressed = routeOptions.config.readsAnyBody === true && headers['content-encoding'] !== undefined;
  const length = Number(headers['content-length'] ?? 0);
  if (isCompressed && headers['transfer-encoding'] === undefined && length <= bodyLimit)
    return Math.min(bodyLimit, length * expectedRatio);
  return headers['transfer-encoding'] === undefined ? length : bodyLimit;
}

/**
 * Percent that the heap grows by, at most, between two full collections; 0: V8's own choice, up to 300.
 */
const maxGrowth = 50;
/** Milliseconds after the last large body, so that a series of them changes the flag once. */
const calmAfter = 10_000;

let works = 0;
let calm: NodeJS.Timeout | undefined;

/**
 * Keeps the heap small until the returned function is called; idempotent. The values of a large body live until its
 * request is answered, which is long enough for V8 to keep them until its next full collection: without the cap they
 * were most of the memory (bench/isolation, attacks 3 and 5). More collections cost other work up to a fifth of its
 * processor time, so the cap holds only while there is such a body.
 */
function keepHeapSmall(): () => void {
  if (works === 0 && calm === undefined) setFlagsFromString(`--heap-growing-percent=${maxGrowth}`);
  clearTimeout(calm);
  calm = undefined;
  works += 1;
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    works -= 1;
    if (works > 0) return;
    calm = setTimeout(() => {
      calm = undefined;
      setFlagsFromString('--heap-growing-percent=0');
    }, calmAfter).unref();
  };
}
