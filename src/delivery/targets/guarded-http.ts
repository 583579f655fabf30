import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { AllowedAddress } from '../../core/config/addresses.ts';
import { productVersion } from '../../core/package-folder.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import {
  guardedLookup,
  isPublic,
  isRefusedAddress,
  type ResolveAll,
  refusedAddress,
} from '../../outbound/addresses.ts';
import { type BoundedResponse, HttpClient, NoResponse, retryAfterOf } from '../../outbound/http-client.ts';
import type { DeliveryResult } from './target.ts';

export interface OutgoingRequest {
  readonly url: string;
  /** Default: POST. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal: StopSignal;
  /** Milliseconds until the response must be complete; default and maximum: 30,000. */
  readonly timeLimit?: number;
}

/** The outcome of a request. `answer` is missing if there was no response. */
export interface Exchange {
  /** `delivered` for 2xx, `suspended` for 410. */
  readonly result: DeliveryResult;
  readonly answer?: TargetAnswer;
}

export interface TargetAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** The first 64 KiB at most. Never stored: only `result` is. */
  readonly body: Buffer;
}

/** Sends requests to addresses that tenants configure. Never rejects because of the target. */
export interface GuardedHttp {
  send(tenant: string, request: OutgoingRequest): Promise<Exchange>;
  /** Why the tenant may not use a URL, or undefined. Does not resolve host names. */
  faultOf(tenant: string, url: URL): string | undefined;
  /** Closes all connections. */
  close(): void;
}

/** Milliseconds. */
export const targetLimits = { connect: 10_000, answer: 30_000, answerBytes: 64 * 1024, keptBytes: 1024 };

/** The same for refused and unreachable addresses, so that tenants cannot probe the network. */
export const noConnection: DeliveryResult = {
  outcome: 'refused',
  reason: 'no_connection',
  error: 'No connection to the target could be made.',
};

export const userAgent = `Annals/${productVersion()}`;

const maxIdleTime = 15_000;
const maxTenants = 1_000;

/**
 * HTTP client for targets. Checks each address as it connects: only public ones over TLS, or those that the operator
 * allows for the tenant. Tenants may be allowed different addresses, so they share no connections.
 */
export function createGuardedHttp(options: {
  allowed: ReadonlyMap<string, readonly AllowedAddress[]>;
  /** For tests. Default: the system resolver. */
  resolve?: ResolveAll | undefined;
  /** For tests: an additional CA certificate. */
  ca?: string | undefined;
}): GuardedHttp {
  const { resolve, ca } = options;
  const clients = new LRUCache<string, HttpClient>({ max: maxTenants, dispose: (client) => client.close() });
  const allowedOf = (tenant: string) => options.allowed.get(tenant) ?? [];
  const refusesPublic = ({ protocol }: URL) => protocol !== 'https:';

  function clientOf(tenant: string): HttpClient {
    const cached = clients.get(tenant);
    if (cached !== undefined) return cached;
    const client = new HttpClient({
      guard: (url) => guardedLookup(url, { allowed: allowedOf(tenant), refusesPublic: refusesPublic(url), resolve }),
      connectTimeout: targetLimits.connect,
      maxIdleTime,
      maxIdleConnections: 16,
      ca,
    });
    clients.set(tenant, client);
    return client;
  }

  async function send(
    tenant: string,
    { url, headers, timeLimit = targetLimits.answer, ...request }: OutgoingRequest,
  ): Promise<Exchange> {
    const startedAt = performance.now();
    const limits = { time: timeLimit, bytes: targetLimits.answerBytes };
    try {
      const all = { 'user-agent': userAgent, ...headers };
      const answer = await clientOf(tenant).send(new URL(url), { ...request, headers: all }, limits);
      return { result: resultOf(answer, startedAt), answer };
    } catch (error) {
      if (!(error instanceof NoResponse)) throw error;
      return { result: resultOfFault(error, startedAt) };
    }
  }

  function faultOf(tenant: string, url: URL): string | undefined {
    const allowed = allowedOf(tenant);
    if (refusesPublic(url) && allowed.length === 0) return 'must begin with https://';
    if (!isRefusedAddress(url, { allowed, refusesPublic: refusesPublic(url) })) return undefined;
    return refusedAddress;
  }

  return { send, faultOf, close: () => clients.clear() };
}

const faults: Record<NoResponse['reason'], string> = {
  timeout: 'The target did not answer in time.',
  upgrade: 'The target switched protocols instead of answering.',
  closed: 'The target closed the connection without an answer.',
};

/** A TLS failure reveals that something listens, so it is reported for public addresses only. */
export function resultOfFault(
  { reason, peer, insecurePeer }: Pick<NoResponse, 'reason' | 'peer' | 'insecurePeer'>,
  startedAt: number,
): DeliveryResult {
  if (peer !== undefined) {
    return { outcome: 'failed', reason, error: faults[reason], ...durationOf(startedAt, peer) };
  }
  if (insecurePeer === undefined || !isPublic(insecurePeer)) return noConnection;
  return { outcome: 'refused', reason: 'tls', error: 'No secure connection (TLS) to the target could be made.' };
}

/** For a target in a private network, keeps only the status of the response. */
function resultOf({ status, headers, body, peer }: BoundedResponse, startedAt: number): DeliveryResult {
  const outcome = status >= 200 && status <= 299 ? 'delivered' : status === 410 ? 'suspended' : 'failed';
  const retryAfter = retryAfterOf({ headers });
  return {
    outcome,
    status,
    ...(isPublic(peer) && { answer: textOf(body) }),
    ...durationOf(startedAt, peer),
    ...(outcome !== 'delivered' && { error: errorOf(status) }),
    ...(retryAfter !== undefined && { retryAfter }),
    ...([429, 502, 504].includes(status) && { isBusy: true }),
  };
}

function durationOf(startedAt: number, peer: string): Pick<DeliveryResult, 'duration'> {
  return isPublic(peer) ? { duration: Math.round(performance.now() - startedAt) } : {};
}

function errorOf(status: number): string {
  if (status >= 300 && status <= 399) return `The target answered with a redirect (${status}), which is not followed.`;
  return `The target answered ${status}.`;
}

/** Drops NUL, which PostgreSQL cannot store. */
function textOf(beginning: Buffer): string {
  return beginning.subarray(0, targetLimits.keptBytes).toString('utf8').replaceAll('\0', '');
}
