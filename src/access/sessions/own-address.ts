import { isIPv4 } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';

/** Where the console may be opened: at the public address; without one, under the names of this machine only. */
export interface OwnAddress {
  /** What is wrong with the host or the origin of the request; undefined if both are valid. */
  faultOfOrigin(request: Pick<FastifyRequest, 'method' | 'headers'>): AnnalsError | undefined;
  /** Whether people may sign in: over TLS, on this machine, or if a setting allows it. */
  readonly allowsSignIn: boolean;
  readonly isOverTls: boolean;
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * The rules of contract 13. They read only `Host`, never `X-Forwarded-Host`, which a page can set: then another site
 * whose name resolves to this machine would pass as ours.
 */
export function createOwnAddress(baseUrl: string | undefined, allowsInsecure: boolean): OwnAddress {
  const own = baseUrl === undefined ? undefined : new URL(baseUrl);
  const isOverTls = own?.protocol === 'https:';

  function isOwnHost({ name, port }: Host): boolean {
    if (own === undefined) return isLoopback(name);
    // A proxy may omit the port.
    return name === own.hostname && (port === undefined || port === portOf(own));
  }

  function isOwnOrigin(origin: string, host: string): boolean {
    if (own !== undefined) return origin === own.origin;
    return isLoopback(parseHost(host)?.name ?? '') && origin === `http://${host.toLowerCase()}`;
  }

  return {
    isOverTls,
    allowsSignIn: own === undefined || isOverTls || isLoopback(own.hostname) || allowsInsecure,
    faultOfOrigin({ method, headers }) {
      const { host = '', origin, 'sec-fetch-site': site } = headers;
      const parsed = parseHost(host);
      if (parsed === undefined || !isOwnHost(parsed)) return misdirected(baseUrl);
      const isForeign = origin === undefined ? !safeMethods.has(method) : !isOwnOrigin(origin, host);
      if (!isForeign && (site === undefined || site === 'same-origin')) return undefined;
      return new AnnalsError('insufficient_permissions', 'Only a page of this console may send this request.');
    },
  };
}

interface Host {
  readonly name: string;
  readonly port: number | undefined;
}

function parseHost(text: string): Host | undefined {
  const [, name, digits] = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\]+)(?::(\d{1,5}))?$/i.exec(text) ?? [];
  if (name === undefined) return undefined;
  return { name: name.toLowerCase(), port: digits === undefined ? undefined : Number(digits) };
}

function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}

function isLoopback(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'));
}

function misdirected(baseUrl: string | undefined): AnnalsError {
  const where =
    baseUrl === undefined
      ? 'The console answers under localhost, 127.0.0.1 and [::1] alone. For another name set ANNALS_BASE_URL.'
      : `The console answers at ${baseUrl}/console alone. A proxy must pass on the Host header.`;
  return new AnnalsError('misdirected_request', where);
}

/** For every way to sign in over plain HTTP beyond loopback. */
export function insecureSignIn(): AnnalsError {
  return new AnnalsError(
    'insufficient_permissions',
    'Signing in over plain HTTP is refused: others in the network could take over the session. Serve the console over ' +
      'HTTPS, or allow it with ANNALS_CONSOLE_INSECURE=true.',
  );
}
