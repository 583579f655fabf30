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

/** What is sent to a target. */
export interface OutgoingRequest {
  readonly url: string;
  /** Default: POST. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal: StopSignal;
  /** Milliseconds until the answer has ended; default and maximum: 30,000. */
  readonly timeLimit?: number;
}

/** How a request went. Without an `answer` there is no status, and nothing is known of the target but `result`. */
export interface Exchange {
  /** `delivered` for 2xx, `suspended` for 410. */
  readonly result: DeliveryResult;
  readonly answer?: TargetAnswer;
}

export interface TargetAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** At most 64 KiB. It may be cut. For the work alone: only `result` is kept. */
  readonly body: Buffer;
}

/** Sends requests to addresses that tenants name. Never rejects for what a target does. */
export interface GuardedHttp {
  send(tenant: string, request: OutgoingRequest): Promise<Exchange>;
  /** Why no request of the tenant can ever go to a URL: what it must be; undefined if one may. Names are not looked up. */
  faultOf(tenant: string, url: URL): string | undefined;
  /** Closes all connections. */
  close(): void;
}

/** Milliseconds. */
export const targetLimits = { connect: 10_000, answer: 30_000, answerBytes: 64 * 1024, keptBytes: 1024 };

/** What is refused and what cannot be reached read the same. */
export const noConnection: DeliveryResult = { outcome: 'refused', error: 'No connection to the target could be made.' };

const maxIdleTime = 15_000;
const maxTenants = 1_000;

interface Agents {
  readonly plain: HttpAgent;
  readonly secure: HttpsAgent;
}

/**
 * HTTP to the targets of subscriptions. The address is checked when a connection is made, and the connection goes to the address that
 * was checked: a public one over TLS, or one that the operator allows for this tenant. Follows no redirect. Connections of one
 * tenant are never another's, who may not be allowed the same.
 */
export function createGuardedHttp(options: {
  allowed: ReadonlyMap<string, readonly AllowedAddress[]>;
  /** For tests: default is the machine's resolver. */
  resolve?: ResolveAll | undefined;
  /** For tests: what TLS takes as a certificate of an authority, besides the usual ones. */
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
    const known = agents.get(tenant);
    if (known !== undefined) return known;
    const kept = { keepAlive: true, maxFreeSockets: 16, timeout: maxIdleTime };
    const made = { plain: new nodeHttp.Agent(kept), secure: new HttpsAgent({ ...kept, ...(ca && { ca }) }) };
    agents.set(tenant, made);
    return made;
  }

  async function send(tenant: string, sent: OutgoingRequest): Promise<Exchange> {
    const { url: address, method = 'POST', headers, body, signal, timeLimit = targetLimits.answer } = sent;
    const url = new URL(address);
    const isSecure = url.protocol === 'https:';
    const { plain, secure } = agentsOf(tenant);
    const begun = performance.now();
    return await new Promise<Exchange>((resolveSent) => {
      let connected: Socket | undefined;
      const end = (exchange: Exchange | Promise<Exchange>) => {
        clearTimeout(connecting);
        clearTimeout(answering);
        signal.removeEventListener('abort', onAbort);
        resolveSent(exchange);
      };
      const fail = (error: string) => {
        const result = { outcome: 'failed', error, ...durationOf(begun, connected) } as const;
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
      const request = attempt(open);
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
        const left = timeLimit - (performance.now() - begun);
        // The target may close a connection that was kept at any moment: that says nothing of this request.
        if (request.reusedSocket && !signal.aborted && left > 0) end(send(tenant, { ...sent, timeLimit: left }));
        else fail('The target closed the connection without an answer.');
      });
      // Node closes such a connection, and says nothing.
      request.once('upgrade', (_response, socket) => {
        socket.destroy();
        fail('The target changed the protocol instead of an answer.');
      });
      request.once('response', (response) => {
        readBeginning(response, (beginning) => {
          const { statusCode: status = 0, headers: answered } = response;
          const result = resultOf(response, { beginning, begun, socket: connected });
          end({ result, answer: { status, headers: answered, body: beginning } });
        });
        // What is read until then counts.
        clearTimeout(answering);
        const rest = Math.max(0, timeLimit - (performance.now() - begun));
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

/** Undefined if the URL names a refused address. */
function attempt<Result>(open: () => Result): Result | undefined {
  try {
    return open();
  } catch {
    return undefined;
  }
}

/** Reads at most 64 KiB, and calls back once, whatever ends it. */
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

/** Of the answers of a target that the operator has allowed the status alone is kept. */
function resultOf(
  response: IncomingMessage,
  { beginning, begun, socket }: { beginning: Buffer; begun: number; socket: Socket | undefined },
): DeliveryResult {
  const { statusCode: status = 0, headers } = response;
  const shown = isPublic(socket?.remoteAddress ?? '');
  const outcome = status >= 200 && status <= 299 ? 'delivered' : status === 410 ? 'suspended' : 'failed';
  const retryAfter = millisecondsOf(headers['retry-after']);
  return {
    outcome,
    status,
    ...(shown && { answer: textOf(beginning) }),
    ...durationOf(begun, socket),
    ...(outcome !== 'delivered' && { error: errorOf(status) }),
    ...(retryAfter !== undefined && { retryAfter }),
    ...([429, 502, 504].includes(status) && { isBusy: true }),
  };
}

function durationOf(begun: number, socket: Socket | undefined): Pick<DeliveryResult, 'duration'> {
  return isPublic(socket?.remoteAddress ?? '') ? { duration: Math.round(performance.now() - begun) } : {};
}

function errorOf(status: number): string {
  if (status >= 300 && status <= 399) return `The target answered with a redirect (${status}), which is not followed.`;
  return `The target answered ${status}.`;
}

/** The header: seconds, or a date (RFC 9110, 10.2.3). */
function millisecondsOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,15}$/.test(header)) return Number(header) * 1_000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Without what PostgreSQL cannot store. */
function textOf(beginning: Buffer): string {
  return beginning.subarray(0, targetLimits.keptBytes).toString('utf8').replaceAll('\0', '');
}
