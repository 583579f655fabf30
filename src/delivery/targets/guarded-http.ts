import type { Agent as HttpAgent, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { AllowedAddress } from '../../core/config/addresses.ts';
import { nodeHttp } from '../../core/node-http.ts';
import { productVersion } from '../../core/package-folder.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import { isPublic } from '../../providers/address.ts';
import { guardedLookup, isRefusedAddress, type ResolveAll, refusedAddress } from '../../providers/guarded-lookup.ts';
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
export const noConnection: DeliveryResult = { outcome: 'refused', error: 'No connection to the target could be made.' };

const maxIdleTime = 15_000;
const maxTenants = 1_000;

interface Agents {
  readonly plain: HttpAgent;
  readonly secure: HttpsAgent;
}

/**
 * HTTP client for targets. Checks each address as it connects: only public ones over TLS, or those that the operator
 * allows for the tenant. Follows no redirects. Tenants may be allowed different addresses, so they share no
 * connections.
 */
export function createGuardedHttp(options: {
  allowed: ReadonlyMap<string, readonly AllowedAddress[]>;
  /** For tests. Default: the system resolver. */
  resolve?: ResolveAll | undefined;
  /** For tests: an additional CA certificate. */
  ca?: string | undefined;
}): GuardedHttp {
  const { resolve, ca } = options;
  const userAgent = `Annals/${productVersion()}`;
  const agents = new LRUCache<string, Agents>({
    max: maxTenants,
    dispose: ({ plain, secure }) => {
      plain.destroy();
      secure.destroy();
    },
  });

  const allowedOf = (tenant: string) => options.allowed.get(tenant) ?? [];

  function agentsOf(tenant: string): Agents {
    const cached = agents.get(tenant);
    if (cached !== undefined) return cached;
    const agentOptions = { keepAlive: true, maxFreeSockets: 16, timeout: maxIdleTime };
    const created = {
      plain: new nodeHttp.Agent(agentOptions),
      secure: new HttpsAgent({ ...agentOptions, ...(ca && { ca }) }),
    };
    agents.set(tenant, created);
    return created;
  }

  async function send(tenant: string, outgoing: OutgoingRequest): Promise<Exchange> {
    const { url: address, method = 'POST', headers, body, signal, timeLimit = targetLimits.answer } = outgoing;
    const url = new URL(address);
    const isSecure = url.protocol === 'https:';
    const { plain, secure } = agentsOf(tenant);
    const startedAt = performance.now();
    return await new Promise<Exchange>((resolveSent) => {
      let connected: Socket | undefined;
      const end = (exchange: Exchange | Promise<Exchange>) => {
        clearTimeout(connecting);
        clearTimeout(answering);
        signal.removeEventListener('abort', onAbort);
        resolveSent(exchange);
      };
      const fail = (error: string) => {
        const result = { outcome: 'failed', error, ...durationOf(startedAt, connected) } as const;
        end({ result: connected === undefined ? noConnection : result });
      };
      const open = () => {
        const lookup = guardedLookup(url, { allowed: allowedOf(tenant), refusesPublic: !isSecure, resolve });
        const all = {
          'user-agent': userAgent,
          ...headers,
          ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
        };
        return isSecure
          ? requestHttps(url, { method, headers: all, lookup, agent: secure })
          : nodeHttp.request(url, { method, headers: all, lookup, agent: plain });
      };
      const onAbort = () => request?.destroy();
      const answering = setTimeout(() => {
        fail('The target did not answer in time.');
        request?.destroy();
      }, timeLimit);
      const connecting = setTimeout(
        () => {
          if (connected === undefined) request?.destroy();
        },
        Math.min(timeLimit, targetLimits.connect),
      );
      signal.addEventListener('abort', onAbort, { once: true });
      const request = tryOpen(open);
      if (request === undefined || signal.aborted) {
        end({ result: noConnection });
        return;
      }
      request.once('socket', (socket) => {
        const onConnect = () => {
          connected = socket;
        };
        if (request.reusedSocket) onConnect();
        else socket.once(isSecure ? 'secureConnect' : 'connect', onConnect);
      });
      request.once('error', () => {
        const left = timeLimit - (performance.now() - startedAt);
        // The target may close an idle connection at any moment, so a reused one gets a retry.
        if (request.reusedSocket && !signal.aborted && left > 0) end(send(tenant, { ...outgoing, timeLimit: left }));
        else fail('The target closed the connection without an answer.');
      });
      // Without a listener Node closes the connection and emits no error.
      request.once('upgrade', (_response, socket) => {
        socket.destroy();
        fail('The target switched protocols instead of answering.');
      });
      request.once('response', (response) => {
        readBeginning(response, (beginning) => {
          const { statusCode: status = 0, headers: answered } = response;
          const result = resultOf(response, { beginning, startedAt, socket: connected });
          end({ result, answer: { status, headers: answered, body: beginning } });
        });
        // At the time limit the part read so far is used.
        clearTimeout(answering);
        const rest = Math.max(0, timeLimit - (performance.now() - startedAt));
        const reading = setTimeout(() => response.destroy(), rest);
        response.once('close', () => clearTimeout(reading));
      });
      request.end(body);
    });
  }

  function faultOf(tenant: string, url: URL): string | undefined {
    const allowed = allowedOf(tenant);
    const isSecure = url.protocol === 'https:';
    if (!isSecure && allowed.length === 0) return 'must begin with https://';
    if (!isRefusedAddress(url, { allowed, refusesPublic: !isSecure })) return undefined;
    return refusedAddress;
  }

  return { send, faultOf, close: () => agents.clear() };
}

/** Undefined if the address is refused. */
function tryOpen<Result>(open: () => Result): Result | undefined {
  try {
    return open();
  } catch {
    return undefined;
  }
}

/** Reads at most 64 KiB and calls back once, also if the response fails. */
function readBeginning(response: IncomingMessage, read: (beginning: Buffer) => void): void {
  const chunks: Buffer[] = [];
  let length = 0;
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > targetLimits.answerBytes) response.destroy();
  });
  response.on('error', () => {});
  response.once('close', () => read(Buffer.concat(chunks).subarray(0, targetLimits.answerBytes)));
}

/** For a target in a private network, keeps only the status of the response. */
function resultOf(
  response: IncomingMessage,
  { beginning, startedAt, socket }: { beginning: Buffer; startedAt: number; socket: Socket | undefined },
): DeliveryResult {
  const { statusCode: status = 0, headers } = response;
  const shown = isPublic(socket?.remoteAddress ?? '');
  const outcome = status >= 200 && status <= 299 ? 'delivered' : status === 410 ? 'suspended' : 'failed';
  const retryAfter = millisecondsOf(headers['retry-after']);
  return {
    outcome,
    status,
    ...(shown && { answer: textOf(beginning) }),
    ...durationOf(startedAt, socket),
    ...(outcome !== 'delivered' && { error: errorOf(status) }),
    ...(retryAfter !== undefined && { retryAfter }),
    ...([429, 502, 504].includes(status) && { isBusy: true }),
  };
}

function durationOf(startedAt: number, socket: Socket | undefined): Pick<DeliveryResult, 'duration'> {
  return isPublic(socket?.remoteAddress ?? '') ? { duration: Math.round(performance.now() - startedAt) } : {};
}

function errorOf(status: number): string {
  if (status >= 300 && status <= 399) return `The target answered with a redirect (${status}), which is not followed.`;
  return `The target answered ${status}.`;
}

/** `Retry-After`: seconds, or a date (RFC 9110, 10.2.3). */
function millisecondsOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,15}$/.test(header)) return Number(header) * 1_000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Drops NUL, which PostgreSQL cannot store. */
function textOf(beginning: Buffer): string {
  return beginning.subarray(0, targetLimits.keptBytes).toString('utf8').replaceAll('\0', '');
}
